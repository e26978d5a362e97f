-- Every person to whom a live record is assigned has a name in the seed people.
{{ config(severity='warn') }}

select person_id, candidates + jobs + companies + bookings + leads as records
from {{ ref('dim_people') }}
where not is_mapped and candidates + jobs + companies + bookings + leads > 0
