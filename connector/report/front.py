"""First page: key figures of a period, four charts, and three lists for action.

Each figure counts existing records by a date, or by their state at the end of the period's last
day. Figures before the first data are unknown; then no change is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from connector.errors import count_noun
from connector.report import charts
from connector.report.figure import (
    NOTHING,
    Chart,
    SentenceFields,
    format_count,
    format_day,
    format_money,
    format_share,
    value_words,
)
from connector.report.period import ReportPeriod, parse_compared_periods, parse_period
from connector.report.pipeline import JOBS_BY_AGE
from connector.report.published import PartMissing, PublishedFile, month_starts, sum_column

_BASE_MIN = 20
"""Smallest number for which a change in percent is shown."""

_LISTED_MAX = 5
_QUIET_DAYS_MIN = 30
_LINE_ROOM = 230
"""Pixels for one line of a list, in the widest font."""


@dataclass(frozen=True, slots=True)
class FigureValue:
    """Value of a key figure in a period.

    Attributes:
        value: The value; None if it is unknown, or if it has several currencies.
        detail: Further numbers, as in "3 permanent, 2 on contract".
        unit: Currency code of an amount; "" for a count.
        amounts: Formatted amounts in several currencies, which cannot be added.
        is_complete: False if records without a value are missing, so that no change is shown.
    """

    value: Decimal | int | None
    detail: str = ""
    unit: str = ""
    amounts: tuple[str, ...] = ()
    is_complete: bool = True

    @property
    def is_known(self) -> bool:
        """Return True if there is a value to show."""
        return self.value is not None or bool(self.amounts)

    @property
    def texts(self) -> tuple[str, ...]:
        """Formatted value; one text for each currency if there are several."""
        if self.value is None:
            return self.amounts or (NOTHING,)
        return (format_money(self.unit, self.value) if self.unit else format_count(self.value),)


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """Value of a key figure in another period, and the change since then; "" if unknown."""

    period: ReportPeriod
    reading: FigureValue
    change: str


@dataclass(frozen=True, slots=True)
class KeyFigureDeclaration:
    """Declaration of a key figure.

    Attributes:
        section: Section with more details.
        sql: Query with the `value` and the fields of `detail`.
        is_of_day: True if it applies to the end of the period's last day, not to all days.
        since: SQL of the first day from which the figure is known.
        compute_value: Function for a figure that is not a single number, instead of `sql`.
    """

    key: str
    label: str
    section: str
    sql: str = ""
    detail: str = ""
    is_of_day: bool = False
    since: str = ""
    compute_value: Callable[[PublishedFile, ReportPeriod], FigureValue] | None = None

    def value_in(self, published: PublishedFile, period: ReportPeriod) -> FigureValue:
        """Return the value in a period. Raises `PartMissing`."""
        if self.compute_value is not None:
            return self.compute_value(published, period)
        row = published.query_row(_insert_period(self.sql, published, period))
        detail = self.detail.format_map(SentenceFields([row], [row])) if row["value"] else ""
        return FigureValue(row["value"], detail)


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """Key figure of a file: its value in the period of the report and in other periods."""

    declaration: KeyFigureDeclaration
    reading: FigureValue
    compared: tuple[ComparedValue, ...] = ()


def compute_key_figure(
    declaration: KeyFigureDeclaration,
    published: PublishedFile,
    period: ReportPeriod,
    compared: Sequence[ReportPeriod],
) -> KeyFigure:
    """Return the key figure of the file. If the file lacks a part, its value is unknown."""
    try:
        return _compute_in_periods(declaration, published, period, compared)
    except PartMissing as missing:
        return KeyFigure(declaration, FigureValue(None, f"The file has no {missing}."))


def _compute_in_periods(
    declaration: KeyFigureDeclaration,
    published: PublishedFile,
    period: ReportPeriod,
    compared: Sequence[ReportPeriod],
) -> KeyFigure:
    """Return the figure in all periods; unknown in periods before the first data."""
    since: date | None = published.query_row(
        _insert_period(f"SELECT ({declaration.since or _FIRST_RECORD}) AS day", published)
    )["day"]
    if since is None or published.today is None:
        return KeyFigure(declaration, FigureValue(None, "No data is loaded yet."))

    def known(each: ReportPeriod) -> FigureValue | None:
        return declaration.value_in(published, each) if each.ends >= since else None

    def is_whole(each: ReportPeriod) -> bool:
        return (each.ends if declaration.is_of_day else each.begins) >= since

    began = f"no data before {format_day(since)}"
    reading = known(period) or FigureValue(None, began)
    if reading.value is not None and not is_whole(period):
        reading = replace(reading, detail=f"{reading.detail}; {began}")
    found = []
    for each in compared:
        other = known(each) or FigureValue(None)
        change = _format_change(reading, other) if is_whole(period) and is_whole(each) else ""
        found.append(ComparedValue(each, other if is_whole(each) else FigureValue(None), change))
    return KeyFigure(declaration, reading, tuple(found))


def _format_change(now: FigureValue, before: FigureValue) -> str:
    """Return the change as a number, and in percent if it is large enough, as in +5, +21%."""
    if now.value is None or before.value is None or not (now.is_complete and before.is_complete):
        return ""
    if now.unit != before.unit and now.value and before.value:
        return ""
    change = Decimal(now.value) - Decimal(before.value)
    sign = "+" if change > 0 else "−" if change < 0 else "±"  # noqa: RUF001 # a minus sign
    if not change or before.value < _BASE_MIN:
        return sign + format_count(abs(change))
    part = sign + format_share(abs(change) / Decimal(before.value))
    return part if now.unit else f"{sign}{format_count(abs(change))}, {part}"


# -- Key figures -----------------------------------------------------------------------------------

_FIRST_RECORD = (
    "SELECT least(min(created_date), (SELECT min(created_at AT TIME ZONE '{zone}')::DATE "
    "FROM marts.fct_pipeline_candidates)) FROM marts.fct_bookings"
)
"""SQL of the day of the first record; values of earlier periods are unknown."""

_FIRST_LOOK = "SELECT min(entered_before AT TIME ZONE '{zone}')::DATE FROM marts.fct_job_statuses"
_IN_STATUS = "entered_at < {evening} AND (is_current OR left_at >= {evening}) AND is_open"


def _insert_period(sql: str, published: PublishedFile, period: ReportPeriod | None = None) -> str:
    """Return the SQL with the fields {days}, {last}, {evening} and {zone} filled in.

    `evening` is the end of the period's last day in the time zone of the account.
    """
    words = {"zone": published.zone}
    if period is not None:
        last = f"DATE '{period.ends}'"
        words |= {"days": f"BETWEEN DATE '{period.begins}' AND {last}", "last": last}
        words["evening"] = f"(({last} + 1)::TIMESTAMP AT TIME ZONE '{published.zone}')"
    return sql.format(**words)


def _placement_fees(published: PublishedFile, period: ReportPeriod) -> FigureValue:
    """Return the fees of the placements, converted if rates are given, else by currency."""
    rows = published.query_rows(
        _insert_period(
            "SELECT currency, count(*) AS placements, count(fee) AS known, sum(fee) AS fee, "
            "count(reporting_fee) AS converted, sum(reporting_fee) AS reporting_fee, "
            "max(reporting_currency) AS reporting_currency FROM marts.fct_placements "
            "WHERE is_placement AND placed_on {days} GROUP BY currency ORDER BY currency",
            published,
            period,
        )
    )
    placements = sum_column(rows, "placements")
    whole = count_noun(placements, "placement")
    if converted := sum_column(rows, "converted"):
        code = next(row["reporting_currency"] for row in rows if row["converted"])
        return FigureValue(
            sum_column(rows, "reporting_fee"),
            f"for {converted:,} of {whole}, converted",
            code,
            is_complete=converted == placements,
        )
    known = [row for row in rows if row["known"] and row["currency"]]
    number = sum_column(known, "known")
    detail = f"for {number:,} of {whole}" if placements else ""
    if len(known) > 1:
        amounts = tuple(format_money(row["currency"], row["fee"]) for row in known)
        return FigureValue(
            None, f"{detail}; no total, because exchange rates are missing", amounts=amounts
        )
    if placements and not number:
        return FigureValue(None, "no placement has a known fee")
    return FigureValue(
        sum_column(known, "fee"),
        detail,
        known[0]["currency"] if known else "",
        is_complete=number == placements,
    )


KEY_FIGURES = (
    KeyFigureDeclaration(
        "placements",
        "Placements agreed",
        "consultants",
        "SELECT count(*) AS value, count(*) FILTER (booking_type = 'permanent') AS permanent, "
        "count(*) FILTER (booking_type = 'contract') AS contract "
        "FROM marts.fct_placements WHERE is_placement AND placed_on {days}",
        "{permanent} permanent, {contract} on contract",
    ),
    KeyFigureDeclaration(
        "fees", "Placement fees (known)", "forecast", compute_value=_placement_fees
    ),
    KeyFigureDeclaration(
        "interviews",
        "Interviews held",
        "met",
        "SELECT count(*) AS value, count(DISTINCT candidate_id) AS candidates "
        "FROM marts.fct_interviews WHERE outcome = 'held' AND start_date {days}",
        "with {candidates candidate}",
    ),
    KeyFigureDeclaration(
        "candidates_added",
        "Candidates added",
        "sources",
        "SELECT count(*) AS value, count(*) FILTER (is_active) AS active "
        "FROM marts.fct_pipeline_candidates "
        "WHERE (created_at AT TIME ZONE '{zone}')::DATE {days}",
        "{active} of them are active today",
    ),
    KeyFigureDeclaration(
        "jobs_opened",
        "Jobs opened",
        "time-to-fill",
        "SELECT count(DISTINCT job_id) AS value, count(DISTINCT company_id) AS clients, "
        "count(DISTINCT job_id) FILTER (outcome IN ('filled', 'partly_filled')) AS filled "
        "FROM marts.fct_time_to_fill WHERE opened_on {days}",
        "by {clients client}; {filled} filled by today",
    ),
    KeyFigureDeclaration(
        "contractors",
        "Contractors at work",
        "ending",
        "SELECT count(DISTINCT candidate_id) AS value, "
        "count(DISTINCT company_id) AS clients FROM marts.fct_placements "
        "WHERE contract_state IS NOT NULL AND NOT is_fall_off AND start_date <= {last} "
        "AND (last_day >= {last} OR last_day IS NULL) "
        "AND (completed_on > {last} OR completed_on IS NULL)",
        "at {clients client} at the end of the last day",
        is_of_day=True,
    ),
    KeyFigureDeclaration(
        "open_jobs",
        "Open jobs",
        "ageing",
        "SELECT count(DISTINCT job_id) AS value, "
        "count(DISTINCT job_id) FILTER (job_status = 'on_hold') AS held "
        f"FROM marts.fct_job_statuses WHERE {_IN_STATUS}",
        "{held} on hold at the end of that day",
        is_of_day=True,
        since=_FIRST_LOOK,
    ),
    KeyFigureDeclaration(
        "active_candidates",
        "Active candidates",
        "stages",
        "SELECT coalesce(sum(end_of_day_count), 0)::BIGINT AS value, "
        "coalesce(sum(end_of_day_count) FILTER (stage_kind = 'paused'), 0)::BIGINT AS paused "
        "FROM marts.fct_pipeline_days WHERE day = {last} AND is_active",
        "{paused} on hold at the end of that day",
        is_of_day=True,
        since="SELECT min(day) FROM marts.fct_pipeline_days",
    ),
)
"""Key figures in the order in which they are shown."""


# -- Charts ----------------------------------------------------------------------------------------

_HEIGHT = 160
"""Height of a chart's bars in pixels: four charts use a third of a sheet."""


@dataclass(frozen=True, slots=True)
class FrontChart:
    """Declaration of a chart of the first page, and the section that contains its numbers.

    Rows of `sql` have a `number` for each `name`, or a `day` to be counted if it `is_by_month`.
    """

    title: str
    section: str
    sql: str
    unit: str
    is_by_month: bool = False

    def draw(self, published: PublishedFile, period: ReportPeriod) -> Chart | None:
        """Return the chart; None without data. Months begin a year before the period.

        Raises `PartMissing`.
        """
        if not self.is_by_month:
            rows = [
                {**row, "name": value_words(row["name"])} for row in published.query_rows(self.sql)
            ]
            if not sum_column(rows, "number"):
                return None
            return charts.bar_chart(rows, "name", "number", unit=self.unit, height=_HEIGHT)
        began = published.query_row(f"SELECT ({_insert_period(_FIRST_RECORD, published)}) AS day")[
            "day"
        ]
        if began is None or began > period.ends:
            return None
        shown = month_starts(max(began, period.earlier(12).begins), period.ends)
        counted = published.query_rows(
            "SELECT date_trunc('month', day)::DATE AS month, count(*) AS number "
            f"FROM ({self.sql}) WHERE day BETWEEN DATE '{shown[0]}' AND DATE '{period.ends}' "
            "GROUP BY month"
        )
        numbers = {row["month"]: row["number"] for row in counted}
        return charts.column_chart(
            [{"month": f"{each:%b %y}", "number": numbers.get(each, 0)} for each in shown],
            "month",
            "number",
            unit=self.unit,
            across="month",
            height=_HEIGHT,
            highlighted=[place for place, each in enumerate(shown) if each >= period.begins],
        )


PICTURES_OF_PERIOD = (
    FrontChart(
        "Placements agreed, by month",
        "months",
        "SELECT placed_on AS day FROM marts.fct_placements WHERE is_placement",
        "placements agreed",
        is_by_month=True,
    ),
    FrontChart(
        "Interviews held, by month",
        "months",
        "SELECT start_date AS day FROM marts.fct_interviews WHERE outcome = 'held'",
        "interviews held",
        is_by_month=True,
    ),
)
PICTURES_OF_TODAY = (
    FrontChart(
        "Active candidates, by stage",
        "stages",
        "SELECT stage AS name, count(*) AS number FROM marts.fct_pipeline_candidates "
        "WHERE is_active GROUP BY stage, stage_order ORDER BY stage_order NULLS LAST, stage",
        "active candidates by stage",
    ),
    FrontChart(
        "Open jobs, by their age",
        "ageing",
        "SELECT coalesce(age_band || ' days', 'not known') AS name, count(job_id) AS number "
        f"{JOBS_BY_AGE}",
        "open jobs by their age",
    ),
)


# -- Lists -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ActionList:
    """Declaration of a list of items that require an action, the most urgent first.

    Rows of `sql` have a `name`, a description `about`, a number in words (`figure`), and the total
    number of items (`all`).
    """

    title: str
    section: str
    sql: str
    empty: str

    def load_rows(self, published: PublishedFile) -> tuple[list[ActionRow], int]:
        """Return the first rows, and the number of further rows; none if the file lacks a part."""
        try:
            rows = published.query_rows(f"{self.sql} LIMIT {_LISTED_MAX}")
        except PartMissing:
            return [], 0
        names = charts.wrap_labels([row["name"] for row in rows], _LINE_ROOM)
        found = [
            ActionRow(
                " ".join(name), " ".join(charts.wrap_label(row["about"], _LINE_ROOM)), row["figure"]
            )
            for name, row in zip(names, rows, strict=True)
        ]
        return found, (rows[0]["all"] if rows else 0) - len(found)


@dataclass(frozen=True, slots=True)
class ActionRow:
    """Row of an action list, short enough for two lines."""

    name: str
    about: str
    figure: str


_ABOUT = "coalesce(company_name, 'no company') || ', ' || consultant_name AS about"

LISTS = (
    ActionList(
        "Contracts that end within 30 days without a next booking",
        "ending",
        "SELECT coalesce(job_title, 'unknown job') AS name, "
        f"{_ABOUT}, days_left || if(days_left = 1, ' day', ' days') AS figure, "
        "count(*) OVER () AS all FROM marts.fct_contracts WHERE ends_within_30_days "
        "AND next_booking_id IS NULL AND NOT is_replaced ORDER BY days_left, booking_id",
        "No such contracts.",
    ),
    ActionList(
        f"Published jobs with nothing booked for {_QUIET_DAYS_MIN} days",
        "ageing",
        "SELECT coalesce(job_title, 'job without a title') AS name, "
        f"{_ABOUT}, format('{{:,}} days', days_since_last_booking) AS figure, "
        "count(*) OVER () AS all FROM marts.fct_job_ageing WHERE job_status = 'published' "
        f"AND days_since_last_booking >= {_QUIET_DAYS_MIN} "
        "ORDER BY days_since_last_booking DESC, job_id",
        "No such jobs.",
    ),
    ActionList(
        "Offers without an answer, by consultant",
        "offers",
        "SELECT consultant_name AS name, "
        "coalesce(arg_max(is_entry_observed, days_in_stage), true) AS is_dated, "
        "if(count(*) = 1, '1 offer', 'the longest of ' || count(*) || ' offers') "
        "AS about, "
        "if(is_dated, '', 'at least ') "
        "|| format('{:,} days', round(max(days_in_stage))::BIGINT) AS figure, "
        "count(*) OVER () AS all "
        "FROM marts.fct_pipeline_candidates WHERE stage = 'offer_made' "
        "GROUP BY consultant_id, consultant_name ORDER BY max(days_in_stage) DESC, consultant_name",
        "No open offers.",
    ),
)
"""Action lists of today."""


# -- The page --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FrontPage:
    """First page for one file: figures of a period, and charts and lists of today.

    Each chart is with its declaration, and None without data. Each list is with its first rows and
    the number of further rows.
    """

    period: ReportPeriod
    compared: tuple[ReportPeriod, ...]
    figures: tuple[KeyFigure, ...]
    of_period: tuple[tuple[FrontChart, Chart | None], ...]
    of_today: tuple[tuple[FrontChart, Chart | None], ...]
    lists: tuple[tuple[ActionList, list[ActionRow], int], ...]


def make_front_page(
    published: PublishedFile, today: date, period_name: str, compared_names: Sequence[str]
) -> FrontPage:
    """Return the first page. Raises `Misused` for periods that cannot be shown or compared."""
    period = parse_period(period_name, today)
    compared = parse_compared_periods(compared_names, period, today)

    def drawn(picture: FrontChart) -> Chart | None:
        try:
            return picture.draw(published, period)
        except PartMissing:
            return None

    return FrontPage(
        period,
        compared,
        tuple(compute_key_figure(each, published, period, compared) for each in KEY_FIGURES),
        tuple((each, drawn(each)) for each in PICTURES_OF_PERIOD),
        tuple((each, drawn(each)) for each in PICTURES_OF_TODAY),
        tuple((each, *each.load_rows(published)) for each in LISTS),
    )
