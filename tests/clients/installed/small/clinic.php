<?php
// What PDO does at Keyhole: `php clinic.php` with PGHOST and so on; a failure is an exception.
function insist(string $name, mixed $found, mixed $expected): void
{
    if ($found !== $expected) {
        throw new Exception("$name: " . var_export($found, true) . ", not " . var_export($expected, true));
    }
}

$place = sprintf("pgsql:host=%s;port=%s;dbname=%s", getenv("PGHOST"), getenv("PGPORT"), getenv("PGDATABASE"));
$question = "SELECT ward FROM visits WHERE ward IN (?,?) GROUP BY ward HAVING count(*) > ? ORDER BY ward";
// prepared by the server, and with the values put into the text
foreach ([false, true] as $emulated) {
    $keyhole = new PDO($place, getenv("PGUSER"), getenv("PGPASSWORD"), [
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => $emulated,
    ]);
    $asked = $keyhole->prepare($question);
    foreach ([1, 2] as $_) {
        foreach (["A", "D"] as $number => $ward) {
            $asked->bindValue($number + 1, $ward);
        }
        $asked->bindValue(3, 1000, PDO::PARAM_INT);
        $asked->execute();
        insist("parameters", $asked->fetchAll(PDO::FETCH_COLUMN), ["A"]);
    }
    $domain = $keyhole->prepare("SELECT DISTINCT ward FROM visits WHERE ward IN (?,?) ORDER BY 1");
    $domain->execute(["B", "A"]);
    insist("domain", $domain->fetchAll(PDO::FETCH_COLUMN), ["A", "B"]);
    try {
        $keyhole->query("SELECT age FROM visits");
        throw new Exception("it was not refused");
    } catch (PDOException $refused) {
        insist("refusal", $refused->errorInfo[0], "42501");
        insist("code and hint", preg_match('/KH103: .*HINT:  Instead you can ask: SELECT ward FROM visits GROUP BY ward/s', $refused->getMessage()), 1);
    }
}
echo "done\n";
