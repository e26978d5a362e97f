"""Words of the sample agency, with their frequencies.

All words are invented. Addresses end in reserved domains, and telephone numbers are in ranges for
fiction. Some values are difficult on purpose: accents, apostrophes, other scripts, emoji, quotes,
line breaks and commas.
"""

from __future__ import annotations

from collections.abc import Mapping


def expand_weights(shares: Mapping[str, int]) -> tuple[str, ...]:
    """Repeat each value as often as its weight, so that a random choice is weighted."""
    return tuple(value for value, share in shares.items() for _ in range(share))


FIRST_NAMES = (
    *("Amelia", "Oliver", "Zoë", "José", "Łukasz", "Siân", "Renée", "Björn", "Anaïs", "Noah"),
    *("Priya", "Mohammed", "Chloé", "Seán", "Ingrid", "Dmitri", "Yuki", "Fatima", "Grace", "Tom"),
    *("Aoife", "Søren", "Nadège", "Małgorzata", "Iñigo", "Ömer", "Thuỳ", "Ada", "Kwame", "李娜"),
    *("Jean-Luc", "Mary Anne", "Åsa", "Đorđe", "Ελένη", "Harriet", "Isaac", "Wei", "Leo", "Ruth"),
)
LAST_NAMES = (
    *("O'Brien", "Müller", "García", "Smith", "Nguyễn", "Kowalski", "Ó Súilleabháin"),
    "D’Angelo",  # noqa: RUF001  # phones put this apostrophe in names
    *("van der Berg", "Şahin", "Novák", "Jones", "Patel", "Brown", "Lefèvre", "Åkesson", "Taylor"),
    *("Fitzgerald-Smythe", "Sørensen", "Ibañez", "Çelik", "Wilson", "Khan", "Evans", "Nowak"),
    *("de la Cruz", "Okonkwo", "Tanaka", "王", "Παπαδόπουλος", "St. John", "McKenzie", "Null"),
)
# For addresses of people whose name has no Latin letters.
FOREIGN_NAME = "guest"
MAIL_BOXES = ("office", "hello", "Someone.Else", "o'brien", "first+last")
MAIL_DOMAINS = ("example.com", "example.org", "example.net", "mail.example", "post.example.co")
CITIES = (
    *("London", "Manchester", "Bristol", "Leeds", "Glasgow", "Belfast", "Cardiff", "Edinburgh"),
    *("Zürich", "København", "Kraków", "Paris", "Málaga", "Reykjavík", "Birmingham", "York"),
)
COUNTIES = ("Greater London", "Kent", "Surrey", "West Yorkshire", "", "Avon", "Co. Antrim")
COUNTRIES = ("United Kingdom", "United Kingdom", "United Kingdom", "GB", "Ireland", "Österreich")
STREETS = ("High Street", "Station Road", "Church Lane", "Rue de l'Église", "Mill Hill", "The Mews")
NATIONALITIES = ("British", "Irish", "Polish", "French", "Indian", "Spanish", "Nigerian")
TRADES = (
    *("Software", "Financial Services", "Healthcare", "Construction", "Legal", "Retail & Leisure"),
    *("Energy", "Education", "Logistics", "Public Sector", "Manufacturing", "Media, Arts"),
)
RANKS = ("", "", "Senior ", "Lead ", "Junior ", "Head of ", "Interim ")
ROLES = (
    *("Data Engineer", "Nurse", "Site Manager", "Accountant", "Paralegal", "Buyer", "Recruiter"),
    *("C++ Developer", "UX/UI Designer", "Project Manager", "Credit Controller", "Quant Analyst"),
    *("Electrician", "Teacher", "Chef de Partie", "Systems Administrator", "Head of R&D"),
)
COMPANY_HEADS = (
    *("Northwind", "Blue Harbour", "Ælfric", "Contoso", "Redwood", "O'Malley & Sons", "Zenith"),
    *("Granite", 'The "Good" Food', "Saffron", "Kestrel", "Müller-Lüdenscheidt", "Peak", "Quill"),
    *("Silver Birch", "Tidewater", "Umbra", "Vertex", "Wren & Co", "Xylo", "Yarrow", "Harbinger"),
)
COMPANY_TAILS = ("Ltd", "Limited", "Group", "Holdings plc", "GmbH", "Partners LLP", "Labs, Inc.")
SKILLS = (
    *("Python", "SQL", "Excel", "Negotiation", "C#", "IFRS", "AutoCAD", "Stakeholder management"),
    *("First aid", "Kubernetes", "Sage 50", "GDPR", "Prince2", "Deutsch (B2)", "Welding", "SEO"),
)
QUALIFICATIONS = ("BSc (Hons)", "MSc", "ACCA", "CSCS card", "PGCE", "RGN", "None", "Ph.D.")
SOURCES = ("LinkedIn", "Referral", "Website", "Job board", "Event", "Cold call", "linkedin", "")
TAGS = ("vip", "vip,urgent", "framework", "psl; tier 1", "dormant", "")
PAYMENT_TERMS = ("30 days", "14 days", "Net 30", "60 days EOM", "")
DEPARTMENTS = ("Engineering", "Finance", "People & Culture", "Operations", "Sales/Marketing", "IT")
TIMEZONES = ("Europe/London", "Europe/Paris", "Europe/Zurich", "UTC", "America/New_York")
CURRENCIES = ("GBP", "GBP", "GBP", "EUR", "CHF", "USD")
LANGUAGES = ("English", "English, Français", "English; Polski", "English, 中文", "Cymraeg")
SENTENCES = (
    "Spoke on the phone; very keen, wants to hear back by Friday.",
    'Said "call me after six" — left a voicemail.',
    "Prefers hybrid, two days a week at most.\nWould relocate for the right role.",
    "Salary is negotiable, notice is not 🙂",
    "Références à vérifier avant l'entretien.",
    "Met at the careers fair; CV to follow, see also: https://example.com/cv?id=1&v=2",
    "Tabs\tand  double spaces came with the import.",
    "=SUM(A1:A2) was pasted here by mistake.",
    "Strong on paper 💪, quieter in person 🤔.",
    "Follow-up booked. Client's feedback: 'excellent', 5/5.",
    "Überzeugend im Gespräch; Straße und Größe geprüft.",
    "- bullet one\n- bullet two\r\n- bullet three",
    "100% committed; comma, semicolon; and a back\\slash.",
)

CANDIDATE_STATUSES = expand_weights(
    {
        "new_lead": 26,
        "screening": 18,
        "submitted": 13,
        "interviewing": 11,
        "offer_made": 4,
        "offer_accepted": 3,
        "placed": 8,
        "rejected": 10,
        "on_hold": 4,
        "withdrawn": 3,
    }
)
EMPLOYMENT_TYPES = expand_weights(
    {
        "permanent": 50,
        "contractor": 22,
        "interim": 10,
        "contract_to_perm": 7,
        "freelance": 6,
        "temporary": 5,
    }
)
EMPLOYMENT_STATUSES = expand_weights(
    {
        "actively_looking": 30,
        "open_to_offers": 28,
        "passive": 22,
        "not_looking": 11,
        "placed": 7,
        "blacklisted": 2,
    }
)
JOB_STATUSES = expand_weights(
    {"draft": 10, "published": 42, "closed": 16, "filled": 20, "on_hold": 6, "cancelled": 6}
)
COMPANY_STATUSES = expand_weights(
    {"prospect": 22, "active": 52, "inactive": 12, "on_hold": 6, "archived": 8}
)
COMPANY_SIZES = ("1-10", "11-50", "51-200", "201-500", "501-1000", "1000+")
BOOKING_TYPES = expand_weights(
    {
        "interview": 48,
        "contract": 14,
        "permanent": 16,
        "internal": 7,
        "consultation": 10,
        "site_visit": 5,
    }
)
# A booking that is over, and one that is not.
PAST_STATUSES = expand_weights(
    {"completed": 62, "cancelled": 16, "rescheduled": 12, "in_progress": 10}
)
COMING_STATUSES = expand_weights({"draft": 8, "scheduled": 46, "confirmed": 38, "cancelled": 8})
LEAD_STATES = expand_weights({"lead": 64, "prospect": 36})
CONTENT_STATES = expand_weights({"draft": 30, "published": 70})
CONTENT_TYPES = (
    ("Blog posts", "blog-posts", "Articles for the public site.", "newspaper"),
    (
        "Testimonials",
        "testimonials",
        'What clients and candidates say — "in their words".',
        "quote",
    ),
    ("Case studies", "case-studies", "Placements told at length.", "briefcase"),
    ("Team members", "team-members", "The consultants, with portraits.", "users"),
    ("Landing pages", "landing-pages", "", "layout"),
    ("FAQs", "faqs", "Questions & answers.", "help-circle"),
)
ITEM_TITLES = (
    *("How we place nurses", "Five mistakes on a CV", 'The "hidden" job market', "Été 2025 🌞"),
    *("Why contractors leave", "Meet the team: Zoë", "IR35, explained", "What is a day rate?"),
)
OPTIONS = ("Red", "Green", "Blue, light", "Ultra-violet")
