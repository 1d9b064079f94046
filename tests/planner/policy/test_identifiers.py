"""Whose rows a table has, as names and types of its columns tell."""

from planner.catalog.sql_types import SourceColumn
from planner.policy.identifiers import find_people, is_identifier, names_person


def columns(names: str, declared: str = "bigint") -> list[SourceColumn]:
    return [SourceColumn(name.strip(), declared, nullable=True) for name in names.split(",")]


PEOPLE = columns(
    "Patient ID,patient-id,patient_id,patientId,PatientID,PATIENT_ID,patientid,patient_id2,src.patient.id,person,"
    "Person,MRN,mrn_hash,patient_mrn,medical_record_number,Medical Record No,SSN,social_security_number,national_id,"
    "NHS Number,customer,customer_key,CustomerID,customerid,customer_account_number,billing_customer_no,cust_id,"
    "user_id,user name,username,userref,email,Email Address,e-mail,phone_number,account_number,employee_number,emp_no,"
    "EmployeeID,member_code,subject_id,household,household_id,visitor_uuid,persons_id,assigned_employee,Kundennummer,kunden_nr,"
    "Mitgliedsnummer,Versichertennummer,paciente_id,usuario"
)
MAYBE = columns("device_id,loyalty_ref,caller_uuid,iid_key,plan_sk")
NOBODY = columns(
    "arrival_date_week_number,order_number,arrival_date_year,house_number,Bestellnummer,Rechnungsnummer,invoice_no,"
    "InvoiceNo,StockCode,product_code,store_id,zip_code,country_code,date_key,week_id,room_no,id,uuid,number,code,"
    "number_of_guests,num_customers,passenger_count,total_users,users,guests,adults,n_patients,is_repeated_guest,"
    "patient_age,customer_country,customer_country_code,customer_type,customer_order_id,member_since,user_agent,"
    "email_opt_in,subject,age,workclass,fnlwgt,education_num,hours_per_week,native_country,VendorID,RatecodeID,"
    "PULocationID,DOLocationID,LocationID,passenger_count,payment_type,store_and_fwd_flag,dep_time,flight,tailnum,origin,"
    "carrier,Description,Quantity,UnitPrice,Country,lead_time,stays_in_week_nights,distribution_channel,adr,company,"
    "personal,useful,guestbook,1,_,-"
)


def test_names_tell_whether_a_column_names_people() -> None:
    """Names of public data sets are among them: retail, census, taxi trips, flights and hotel bookings."""
    assert [one.name for one in PEOPLE if not names_person(one)] == []
    assert [one.name for one in (*MAYBE, *NOBODY) if names_person(one)] == []
    found = find_people([*MAYBE, *NOBODY, *PEOPLE])
    assert found == tuple(one.name for one in (*PEOPLE, *MAYBE))


def test_what_names_a_thing_is_no_measure() -> None:
    things = "order_number,InvoiceNo,StockCode,id,store_id,Bestellnummer,MRN,Patient ID"
    assert all(is_identifier(one) for one in columns(things))
    measures = "arrival_date_week_number,week_number,number,code,passenger_count,patient_age,total_users,cost,1,_"
    assert not any(is_identifier(one) for one in columns(measures))


def test_types_of_few_values_name_nobody() -> None:
    few = ("smallint", "TINYINT", "boolean", "date", "timestamp", "varchar(2)", "character varying(1)")
    assert find_people(one for declared in few for one in columns("patient_id,person,MRN", declared)) == ()
    assert find_people([SourceColumn("member_code", "text", True, enumerated=True)]) == ()
    many = ("integer", "numeric(12,0)", "double precision", "text", "varchar(36)", "uuid")
    assert len(find_people(one for declared in many for one in columns("patient_id", declared))) == len(many)
