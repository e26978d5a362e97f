"""Files of recruiters: new candidates in German, changes in French, leads in English."""

from __future__ import annotations

import csv
import random
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl

GERMAN_HEADINGS = (
    *("Kandidaten-Nr.", "Anrede", "Vorname", "Nachname", "E-Mail", "Telefon", "Mobil"),
    *("Straße und Hausnr.", "PLZ", "Ort", "Land", "Geburtsdatum", "Anstellungsart"),
    *("Aktuelle Position", "Arbeitgeber", "Gehaltswunsch", "Kündigungsfrist", "Verfügbar ab"),
    *("Umzugsbereit", "Führerschein", "Kenntnisse", "Quelle", "Bemerkung"),
)
FRENCH_HEADINGS = (
    *("Prénom", "Nom", "Courriel", "Portable", "Ville", "Code postal", "Poste actuel"),
    *("Salaire souhaité (€)", "Préavis", "Disponible à partir du", "Mobilité", "Commentaire"),
)
PEOPLE = 60
WRONG_EMAILS = {11: "k11 at beispiel.example", 23: "k23@beispiel,example", 31: ""}
"""By the place of a person in the German file, an email address that is wrong."""

_EMPLOYMENT = (
    *("Festanstellung",) * 5,
    *("Freiberuflich", "Zeitarbeit", "befristet", "Teilzeit", "Festanstellung (Vollzeit)"),
)
_SALARIES = ("65.000 €", "72.500,00", "58000", "84.000 EUR", "1.200 €/Tag", "VB", "k.A.", "95.000")
_NOTICE = ("3 Monate", "4 Wochen", "sofort", "90 Tage", "30", "6 Wochen zum Quartalsende", "")
_STARTS = ("01.09.2026", "15.10.2026", "sofort", "1. September 2026", "01.01.27", "")


def write_german_export(path: Path) -> Path:
    """Write an export of 60 candidates, two of them twice, in a Windows encoding."""
    draw = random.Random(4)
    rows = []
    for place in range(PEOPLE):
        born = f"{draw.randint(1, 28):02d}.{draw.randint(1, 12):02d}.{draw.randint(1962, 1999)}"
        numbers = draw.randint(2_000_000, 9_999_999), draw.randint(2_000_000, 9_999_999)
        phone = draw.choice(["0049 30 %07d", "0049 (0)89 %07d", "030/%07d"]) % numbers[0]
        mobile = draw.choice(["0049 171 %07d", "0049-160-%07d", "+49 (0) 172 %07d"]) % numbers[1]
        rows.append(
            [
                f"K-{10_400 + place}",
                draw.choice(["Herr", "Frau"]),
                draw.choice(["Jörg", "Käthe", "Änne", "Zoë", "Anna-Lena"]),
                draw.choice(["Müller", "Groß", "von der Heide", "Özdemir"]),
                WRONG_EMAILS.get(place, f"k{place}@beispiel.example"),
                phone,
                "siehe CV" if place == 40 else mobile,
                f"Hauptstraße {place + 1}",
                draw.choice(["01067", "80331"]),
                draw.choice(["Dresden", "München"]),
                draw.choice(["Deutschland", "Österreich"]),
                "31.02.1985" if place == 7 else born,
                draw.choice(_EMPLOYMENT),
                draw.choice(["Vertriebsleiter", "Softwareentwicklerin"]),
                draw.choice(["Müller & Söhne GmbH", "Größe AG"]),
                draw.choice(_SALARIES),
                draw.choice(_NOTICE),
                draw.choice(_STARTS),
                draw.choice(["ja", "nein", "k.A.", "bedingt"]),
                draw.choice(["B", "B, BE", "keiner"]),
                "SAP, Excel, Führung",
                draw.choice(["XING", "Empfehlung"]),
                draw.choice(["", "Rückruf nach 18 Uhr", "sehr gut, „empfohlen“"]),
            ]
        )
    rows += [rows[3], rows[9]]
    with path.open("w", encoding="cp1252", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(GERMAN_HEADINGS)
        writer.writerows(rows)
    return path


def write_french_list(path: Path, people: list[dict[str, Any]]) -> Path:
    """Write changes of 30 candidates, five of them twice, below a title."""
    draw = random.Random(4)
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Mise à jour des candidats, agence de Lyon"])
    sheet.append([])
    sheet.append(FRENCH_HEADINGS)
    starts = (date(2026, 12, 1), "01/02/2027", "15/01/2027", None)
    rows = [
        [
            *(each["first_name"], each["last_name"], each["email"]),
            "06 " + " ".join(f"{draw.randint(10, 99)}" for _ in range(4)),
            *(draw.choice(["Lyon", "Grenoble"]), draw.choice(["69003", "01000"])),
            draw.choice(["Contrôleuse", "Comptable"]),
            draw.choice([38_000, "42 500 €", "45k€", 52_000]),
            draw.choice(["1 mois", "3 mois", "15 jours", "immédiat", "6 semaines"]),
            draw.choice(starts),
            draw.choice(["oui", "non", "à voir"]),
            "Entretien OK",
        ]
        for each in people[:30]
    ]
    rows += [[*rows[4 * n][:4], "Paris", *rows[4 * n][5:]] for n in range(5)]
    rows[2][2] = str(rows[2][2]).replace("@", "")
    rows[17][2] = "inconnu.personne@exemple.example"
    for row in rows:
        sheet.append(row)
    book.save(path)
    return path


LEADS = 200
MISTYPED = (20, 77, 130)
"""Places of leads in the English list whose email address is not theirs."""


def write_english_leads(path: Path, leads: list[dict[str, Any]]) -> Path:
    """Write leads to convert, one of them twice, with additional columns."""
    rows = [
        [
            f"{each['first_name'] or ''} {each['last_name'] or ''}".strip(),
            each["company_name"] or "",
            each["email"].replace("@", "@old-") if place in MISTYPED else each["email"],
            *("3/11/2026", "Kim", "Won"),
        ]
        for place, each in enumerate(leads[:LEADS])
    ]
    rows.append([*rows[5][:2], rows[5][2].upper(), *rows[5][3:]])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("Full Name", "Company", "Email Address", "Last Touch", "Owner", "Stage"))
        writer.writerows(rows)
    return path
