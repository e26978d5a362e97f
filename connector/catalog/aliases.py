"""Headings under which people know fields that several resources have.

A spreadsheet's column is taken for a field by its name or by one of these. Headings of a field that
one resource alone has stand on that resource's page. All of them are certain enough to be used
without asking; those that are not are hints (`connector/spreadsheet/columns.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

SHARED_ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("Record id", "Uuid"),
    "first_name": ("Forename", "Given name", "Christian name", "First", "Vorname", "Prénom"),
    "last_name": ("Surname", "Family name", "Last", "Nachname", "Nom de famille"),
    "email": ("Email address", "E-mail address", "Mail", "E-mail id", "Primary email"),
    "phone": ("Telephone", "Tel", "Phone number", "Phone no", "Telephone number", "Landline"),
    "mobile": ("Mobile no", "Mobile number", "Mobile phone", "Cell", "Cell phone", "Cellphone"),
    "city": ("Town", "Town or city", "Town/city", "City/town"),
    "country": ("Country of residence",),
    "website": ("Web site", "Web", "Homepage", "Web address"),
    "network_url": ("Professional profile", "Network profile", "Profile URL"),
    "employment_type": ("Type of employment", "Contract or permanent", "Perm/contract"),
    "notice_period_days": ("Notice days", "Notice period (days)", "Notice in days"),
    "industry": ("Sector", "Industry sector"),
    "source": ("Lead source", "Candidate source", "How found", "Where found"),
    "ir35_status": ("IR35",),
    "notes": ("Note", "Comments", "Comment", "Remarks"),
    "internal_notes": ("Internal comments", "Private notes", "Internal note"),
    "tags": ("Labels", "Keywords"),
    "payment_terms": ("Terms", "Terms of payment"),
    "location": ("Work location", "Place of work"),
    "salary_currency": ("Currency of salary",),
    "rate_currency": ("Currency of day rate", "Day rate currency"),
    "fee_percentage": ("Fee %", "Fee percent", "Percentage fee"),
}
"""By the field's name, other headings for it."""
