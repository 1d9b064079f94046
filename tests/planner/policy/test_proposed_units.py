"""Who is protected in the tables of a source, and how rows lead there, as names and constraints tell."""

from collections.abc import Sequence

import pytest

from planner.catalog.relation_names import ForeignKey, RelationIdentity
from planner.catalog.sql_types import SourceColumn
from planner.policy.key_steps import SourceTable
from planner.policy.proposed_units import ProposedUnit, propose_units

Unique = Sequence[str]


def table(columns: str, *keys: Unique, leads: Sequence[tuple[Unique, str, Unique]] = ()) -> SourceTable:
    """A table of columns, numbers unless `name:type` says so, with what constraints keep unique and where they lead."""
    named = [one.strip().partition(":") for one in columns.split(",")]
    found = tuple(SourceColumn(name, declared or "bigint", nullable=True) for name, _, declared in named)
    identity = RelationIdentity(
        names=("x",),
        bases=frozenset(),
        is_view=False,
        is_join=False,
        unique=frozenset(key[0] for key in keys if len(key) == 1),
        keys=frozenset(frozenset(key) for key in keys if len(key) > 1),
    )
    return SourceTable(found, identity, tuple(ForeignKey(tuple(a), other, tuple(b)) for a, other, b in leads))


def describe(proposed: ProposedUnit) -> str:
    """Write a proposal in one line: the unit, what is as there, the ways, what has to be vouched for."""
    said = [proposed.column or "-"]
    said += ["alone" if proposed.is_one_row else "", "proved" if proposed.is_unique else ""]
    said += [
        f"as {proposed.same_people_step.table}" if proposed.same_people_step else "",
        f"like {proposed.similar_table}" if proposed.similar_table else "",
    ]
    for step in proposed.paths:
        mark = "=>" if step.is_declared else "->" if step.is_unique else "~>"
        said.append(f"{','.join(step.columns)} {mark} {step.table}.{','.join(step.reached_columns)}")
    said += ["lookup" if proposed.is_lookup else ""]
    said += [f"{column}: {step.table}.{step.reached_columns[0]}" for column, step in sorted(proposed.lookups.items())]
    said += [f"vouch {','.join(columns)} for {','.join(tables)}" for columns, tables in proposed.vouched_paths.items()]
    return " ".join(one for one in said if one)


HOSPITAL = {
    "drugs": table("drug_id,class:text"),
    "labs": table("lab_id,stay_id,test:text,value:numeric"),
    "patients": table("patient_id,sex:text"),
    "prescriptions": table("prescription_id,stay_id,drug_id,started:date"),
    "stays": table("stay_id,patient_id,ward_id,admitted:date"),
    "wards": table("ward_id,name:text"),
}
DECLARED = {
    "labs": table("lab_id,stay_id,test:text", ["lab_id"], leads=[(["stay_id"], "stays", ["stay_id"])]),
    "patients": table("patient_id,sex:text", ["patient_id"]),
    "stays": table("stay_id,patient_id", ["stay_id"], leads=[(["patient_id"], "patients", ["patient_id"])]),
}
WORLDS = [
    (
        HOSPITAL,
        {
            "drugs": "- lookup",
            "labs": "- stay_id ~> stays.stay_id",
            "patients": "patient_id alone",
            "prescriptions": "- stay_id ~> stays.stay_id drug_id: drugs.drug_id",
            "stays": "patient_id as patients ward_id: wards.ward_id vouch stay_id for labs,prescriptions",
            "wards": "- lookup",
        },
    ),
    (
        DECLARED,
        {
            "labs": "- stay_id => stays.stay_id",
            "patients": "patient_id alone proved",
            "stays": "patient_id as patients",
        },
    ),
    (  # TPC-H as files: prefixes, abbreviations, no person among suppliers
        {
            "customer": table("c_custkey,c_name:text,c_nationkey"),
            "lineitem": table("l_orderkey,l_partkey,l_suppkey,l_linenumber,l_shipmode:text"),
            "nation": table("n_nationkey,n_name:text,n_regionkey"),
            "orders": table("o_orderkey,o_custkey,o_orderstatus:text"),
            "part": table("p_partkey,p_name:text"),
            "partsupp": table("ps_partkey,ps_suppkey,ps_supplycost:numeric"),
            "region": table("r_regionkey,r_name:text"),
            "supplier": table("s_suppkey,s_nationkey,s_name:text"),
        },
        {
            "customer": "c_custkey alone c_nationkey: nation.n_nationkey",
            "lineitem": "- l_orderkey ~> orders.o_orderkey l_partkey: part.p_partkey l_suppkey: supplier.s_suppkey",
            "nation": "- lookup n_regionkey: region.r_regionkey",
            "orders": "o_custkey as customer vouch o_orderkey for lineitem",
            "part": "- lookup",
            "partsupp": "- ps_partkey: part.p_partkey ps_suppkey: supplier.s_suppkey",
            "region": "- lookup",
            "supplier": "- lookup s_nationkey: nation.n_nationkey",
        },
    ),
    (  # ids that are called id, two steps away; constraints without foreign keys
        {
            "dim_users": table("id,email:text", ["id"]),
            "orders": table("id,user_id,total:numeric", ["id"]),
            "order_items": table("id,order_id", ["id"]),
            "item_returns": table("order_item_id,reason:text"),
        },
        {
            "dim_users": "id alone proved",
            "orders": "user_id as dim_users",
            "order_items": "- order_id -> orders.id",
            "item_returns": "- order_item_id -> order_items.id",
        },
    ),
    (  # keys of several columns: as the catalogue has them, else beside the single one
        {
            "customer": table("c_custkey"),
            "lineitem": table("l_shop:text,l_orderkey"),
            "orders": table("o_shop:text,o_orderkey,o_custkey", ["o_shop", "o_orderkey"]),
        },
        {
            "customer": "c_custkey alone",
            "lineitem": "- l_shop,l_orderkey -> orders.o_shop,o_orderkey",
            "orders": "o_custkey as customer",
        },
    ),
    (
        {"lines": table("shop_id,order_id"), "orders": table("shop_id,order_id,customer_id")},
        {
            "lines": "- order_id ~> orders.order_id shop_id,order_id ~> orders.shop_id,order_id",
            "orders": "customer_id vouch order_id for lines",
        },
    ),
    (  # who entered a row is a person, too: nothing tells which of the two is meant
        {
            "labs": table("id,visit_id,user_id"),
            "users": table("id,name:text"),
            "visits": table("id,patient_id,day:date"),
        },
        {
            "labs": "user_id as users visit_id ~> visits.id",
            "users": "id alone",
            "visits": "patient_id",
        },
    ),
    (  # an account is called as people are, and has a customer beside it
        {
            "accounts": table("account_id,customer_id"),
            "customers": table("customer_id,city:text"),
            "transactions": table("transaction_id,account_id,amount:numeric"),
        },
        {
            "accounts": "customer_id as customers vouch account_id for transactions",
            "customers": "customer_id alone",
            "transactions": "- account_id ~> accounts.account_id",
        },
    ),
    (  # the same word in several tables, and no table of these people
        {"admissions": table("hadm_id,subject_id"), "events": table("subject_id,hadm_id,value:numeric")},
        {"admissions": "subject_id", "events": "subject_id like admissions"},
    ),
    (  # types differ, words differ, and what ends like an id is none
        {
            "customers": table("customer_id:text,name:text"),
            "grids": table("grid_id,size"),
            "orders": table("order_no,customer_id"),
            "lines": table("order_id,paid,grid"),
        },
        {"customers": "customer_id alone", "grids": "-", "lines": "-", "orders": "customer_id"},
    ),
    (  # no two tables lead to one another for ever
        {"a": table("id,b_id"), "b": table("id,a_id"), "c": table("id,a_id,user_id")},
        {"a": "- lookup b_id: b.id", "b": "- lookup a_id: a.id", "c": "user_id a_id: a.id"},
    ),
]


@pytest.mark.parametrize(("tables", "expected"), WORLDS)
def test_rows_are_led_to_people_by_constraints_and_names(
    tables: dict[str, SourceTable], expected: dict[str, str]
) -> None:
    assert {name: describe(one) for name, one in propose_units(tables).items()} == expected
