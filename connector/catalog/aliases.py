"""Column headings for fields that several resources share.

A spreadsheet column is matched to a field by the field name or by one of these headings. Headings
of a field that only one resource has are declared with the resource. All headings here are used
without asking the user; uncertain headings are in `connector/spreadsheet/words.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping

_ENGLISH: Mapping[str, tuple[str, ...]] = {
    "id": ("Record id", "Uuid"),
    "first_name": (
        "Forename",
        "Forenames",
        "Forename(s)",
        "Given name",
        "Christian name",
        "First",
        "Vorname",
        "Prénom",
    ),
    "last_name": ("Surname", "Family name", "Last", "Nachname", "Nom de famille"),
    "email": (
        *("Email address", "E-mail address", "Mail", "E-mail id", "Primary email"),
        *("E-mail 1 - Value", "Email 1 - Value"),
    ),
    "phone": (
        *("Telephone", "Tel", "Phone number", "Phone no", "Telephone number", "Landline"),
        *("Home tel", "Tel no", "Phone 1 - Value"),
    ),
    "mobile": ("Mobile no", "Mobile number", "Mobile phone", "Cell", "Cell phone", "Cellphone"),
    "city": ("Town", "Town or city", "Town/city", "City/town"),
    "country": ("Country of residence",),
    "website": ("Web site", "Web", "Homepage", "Web address"),
    "network_url": (
        *("Professional profile", "Network profile", "Profile URL"),
        *("LinkedIn", "LinkedIn URL", "LinkedIn profile"),
    ),
    "employment_type": ("Type of employment", "Contract or permanent", "Perm/contract"),
    "notice_period_days": (
        *("Notice days", "Notice period (days)", "Notice in days", "Notice", "Notice period"),
    ),
    "assigned_to": ("Consultant", "Recruiter", "Owner", "Record owner"),
    "industry": ("Sector", "Industry sector"),
    "source": ("Lead source", "Candidate source", "How found", "Where found"),
    "ir35_status": ("IR35",),
    "notes": ("Note", "Comments", "Comment", "Remarks"),
    "internal_notes": ("Internal comments", "Private notes", "Internal note"),
    "tags": ("Labels", "Keywords"),
    "payment_terms": ("Terms", "Terms of payment"),
    "location": ("Work location", "Place of work", "Site"),
    "salary_currency": ("Currency of salary",),
    "rate_currency": ("Currency of day rate", "Day rate currency"),
    "fee_percentage": ("Fee %", "Fee", "Fee percent", "Percentage fee"),
}

# German, French, Spanish, Dutch and Italian, then headings in exports of other systems.
_LANGUAGES: Mapping[str, str] = {
    "first_name": "Rufname|Nombre|Nombre de pila|Voornaam|Roepnaam|Nome",
    "last_name": "Familienname|Zuname|Nom|Apellido|Apellidos|Achternaam|Cognome",
    "email": "E-Mail-Adresse|Mailadresse|Adresse e-mail|Adresse mail|Courriel|Adresse électronique"
    "|Correo|Correo electrónico|E-mailadres|Mailadres|Indirizzo e-mail|Posta elettronica"
    "|Email 1|Email address 1|Candidate email|Work email|Personal email",
    "phone": "Telefon|Telefonnummer|Festnetz|Rufnummer|Téléphone|Tél|Numéro de téléphone|Teléfono"
    "|Número de teléfono|Telefoonnummer|Telefoon|Telefono|Numero di telefono|Phone numbers"
    "|Home phone|Primary phone|Contact no",
    "mobile": "Handy|Handynummer|Mobil|Mobiltelefon|Mobilnummer|Portable|Téléphone portable|Móvil"
    "|Teléfono móvil|Mobiel|Mobiel nummer|Cellulare|Telefono cellulare|Mobile phone number",
    "city": "Ort|Wohnort|Stadt|Ville|Ciudad|Localidad|Población|Plaats|Woonplaats|Stad|Città|Comune"
    "|Current city",
    "country": "Land|Pays|País|Paese|Nazione",
    "address_line1": "Straße|Adresse|Anschrift|Rue|Dirección|Adres|Straat|Indirizzo|Via",
    "postal_code": "PLZ|Postleitzahl|Code postal|Código postal|Codice postale|CAP",
    "postcode": "PLZ|Postleitzahl|Code postal|Código postal|Codice postale|CAP",
    "date_of_birth": "Geburtsdatum|Geboren am|Date de naissance|Né le|Fecha de nacimiento"
    "|Geboortedatum|Data di nascita",
    "nationality": "Nationalität|Staatsangehörigkeit|Nationalité|Nacionalidad|Nationaliteit"
    "|Nazionalità",
    "employment_type": "Beschäftigungsart|Anstellungsart|Vertragsart|Type de contrat"
    "|Tipo de contrato|Dienstverband|Soort contract|Tipo di contratto|Employment preference",
    "current_company": "Arbeitgeber|Aktueller Arbeitgeber|Firma|Employeur|Entreprise"
    "|Entreprise actuelle|Empresa|Empresa actual|Werkgever|Huidige werkgever|Datore di lavoro"
    "|Azienda",
    "current_job_title": "Position|Aktuelle Position|Beruf|Berufsbezeichnung|Poste|Poste actuel"
    "|Intitulé du poste|Puesto|Puesto actual|Cargo|Functie|Huidige functie|Posizione|Ruolo|Headline"
    "|Occupation",
    "expected_salary": "Gehaltsvorstellung|Gehaltswunsch|Wunschgehalt|Prétentions salariales"
    "|Salaire souhaité|Salario deseado|Expectativa salarial|Gewenst salaris|Salariswens"
    "|RAL desiderata|Retribuzione desiderata|Salary expected|Expected",
    "current_salary": "Aktuelles Gehalt|Salaire actuel|Salario actual|Huidig salaris|RAL attuale"
    "|Retribuzione attuale|Salary current",
    "available_from": "Verfügbar ab|Verfügbarkeit|Eintrittsdatum|Disponible à partir du"
    "|Disponibilité|Disponible desde|Disponibilidad|Beschikbaar vanaf|Beschikbaarheid"
    "|Disponibile dal|Disponibilità",
    "notice_period_days": "Kündigungsfrist in Tagen|Préavis en jours|Preaviso en días",
    "skills": "Kenntnisse|Fähigkeiten|Compétences|Competencias|Habilidades|Vaardigheden|Competenze",
    "languages": "Sprachen|Sprachkenntnisse|Langues|Idiomas|Talen|Lingue",
    "notes": "Notizen|Bemerkungen|Bemerkung|Anmerkungen|Kommentar|Remarques|Commentaires|Notas"
    "|Observaciones|Comentarios|Notities|Opmerkingen|Note del recruiter|Osservazioni",
    "source": "Quelle|Herkunft|Origine|Fuente|Origen|Bron|Fonte|Provenienza",
    "industry": "Branche|Secteur|Sector de actividad|Branche d'activité|Settore",
    "website": "Webseite|Internetseite|Site web|Site internet|Sitio web|Sito web",
    "willing_to_relocate": "Umzugsbereit|Umzugsbereitschaft|Mobilité|Disponibilidad para mudarse",
    "network_url": "Public profile URL|Profile link|Network URL",
    "company_name": "Firma|Firmenname|Entreprise|Société|Empresa|Bedrijf|Bedrijfsnaam|Azienda",
    "location": "Arbeitsort|Einsatzort|Lieu de travail|Lugar de trabajo|Werklocatie|Standplaats"
    "|Luogo di lavoro|Sede",
    "description": "Beschreibung|Descripción|Omschrijving|Descrizione",
}


SHARED_ALIASES: Mapping[str, tuple[str, ...]] = {
    name: (*_ENGLISH.get(name, ()), *filter(None, _LANGUAGES.get(name, "").split("|")))
    for name in {**_ENGLISH, **_LANGUAGES}
}
"""Further headings by field name."""


EXPORTS: tuple[tuple[frozenset[str], Mapping[str, str | None]], ...] = (
    (
        frozenset(("firstname", "lastname", "url", "company", "position", "connectedon")),
        {"url": "network_url", "company": "current_company", "position": "current_job_title"},
    ),
    (
        frozenset(("name", "email", "candidatelocation", "relevantexperience", "jobtitle")),
        {"jobtitle": None, "joblocation": None, "status": None},
    ),
    (
        frozenset(("candidatename", "currenttitle", "currentcompany", "appliedon")),
        {"jobname": None, "status": None},
    ),
    (
        frozenset(("id", "firstname", "lastname", "dateadded")),
        {"id": None, "title": "current_job_title"},
    ),
)
"""Exports of other systems: the normalized headings that identify the file, and the candidate
field of some headings (None if the column is ignored).
"""
