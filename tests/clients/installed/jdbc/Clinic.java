import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.PGProperty;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** What pgjdbc does at Keyhole: `java Clinic URL USER PASSWORD SECTION`; a failure is an exception. */
public final class Clinic {
    private static final String QUESTION =
        "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000 ORDER BY ward";
    private static final String ASKED =
        "SELECT ward FROM visits WHERE age >= ? AND day >= ? GROUP BY ward HAVING count(*) > ? ORDER BY ward";
    private static final String REFUSED = "SELECT age FROM visits";

    private final String url;
    private final String user;
    private final String password;

    private Clinic(String url, String user, String password) {
        this.url = url;
        this.user = user;
        this.password = password;
    }

    public static void main(String[] arguments) throws Exception {
        Clinic clinic = new Clinic(arguments[0], arguments[1], arguments[2]);
        switch (arguments[3]) {
            case "values" -> clinic.values();
            case "keys" -> clinic.keys();
            case "parameters" -> clinic.parameters();
            case "refusals" -> clinic.refusals();
            case "metadata" -> clinic.metadata();
            case "fetching" -> clinic.fetching();
            case "transactions" -> clinic.transactions();
            case "batches" -> clinic.batches();
            case "cancelling" -> clinic.cancelling();
            case "settings" -> clinic.settings();
            case "copies" -> clinic.copies();
            case "numbers" -> clinic.numbers();
            default -> throw new IllegalArgumentException(arguments[3]);
        }
        System.out.println("done");
    }

    private Connection connect(String... properties) throws SQLException {
        Properties given = new Properties();
        given.setProperty("user", user);
        given.setProperty("password", password);
        given.setProperty("sslmode", "disable");
        for (int index = 0; index < properties.length; index += 2) {
            given.setProperty(properties[index], properties[index + 1]);
        }
        return DriverManager.getConnection(url, given);
    }

    private static void same(Object expected, Object found) {
        if (!(expected == null ? found == null : expected.equals(found))) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    private static List<String> column(ResultSet rows, int column) throws SQLException {
        List<String> values = new ArrayList<>();
        while (rows.next()) {
            values.add(rows.getString(column));
        }
        rows.close();
        return values;
    }

    private static List<String> column(ResultSet rows, String name) throws SQLException {
        return column(rows, rows.findColumn(name));
    }

    private void values() throws SQLException {
        for (String transfer : List.of("true", "false")) {
            try (Connection connection = connect("binaryTransfer", transfer, "prepareThreshold", "1");
                PreparedStatement statement = connection.prepareStatement(
                    "SELECT k.*, at AT TIME ZONE 'UTC' AS moment, ARRAY[id, 2] AS numbers, ARRAY[code, NULL] AS tags,"
                        + " '\\x00ff10'::bytea AS raw FROM kinds k WHERE id IN (1, 3) ORDER BY id")) {
                for (int time = 0; time < 3; time++) {
                    ResultSet row = statement.executeQuery();
                    same(true, row.next());
                    same(true, row.getBoolean("flag"));
                    same((short) 2, row.getShort("small"));
                    same(9007199254740993L, row.getLong("big"));
                    same(new BigDecimal("12.30"), row.getBigDecimal("price"));
                    same(0.1, row.getDouble("ratio"));
                    same(1.5f, row.getFloat("part"));
                    same("Ärzte; \"a\" 'b' \\n", row.getString("word"));
                    same(LocalDate.of(2026, 2, 28), row.getObject("day", LocalDate.class));
                    same(LocalDateTime.of(2026, 2, 28, 12, 34, 56, 789000000), row.getObject("at", LocalDateTime.class));
                    same(UUID.fromString("11111111-2222-3333-4444-555555555555"), row.getObject("badge"));
                    same(
                        OffsetDateTime.of(2026, 2, 28, 12, 34, 56, 789000000, ZoneOffset.UTC),
                        row.getObject("moment", OffsetDateTime.class));
                    same(List.of(1, 2), Arrays.asList((Integer[]) row.getArray("numbers").getArray()));
                    same(Arrays.asList("x1", null), Arrays.asList((String[]) row.getArray("tags").getArray()));
                    same(3, row.getBytes("raw").length);
                    same(true, row.next());
                    row.getInt("small");
                    same(true, row.wasNull());
                    same(null, row.getObject("price"));
                    same(null, row.getObject("at"));
                    same(false, row.next());
                }
            }
        }
    }

    private void keys() throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            String[] expected = {"[A, B]", "[1, 2]", "[f, t]", "[2026-01-01, 2026-01-02]",
                "[2026-01-01 00:00:00, 2026-01-01 01:00:00]"};
            int[] types = {Types.VARCHAR, Types.INTEGER, Types.BIT, Types.DATE, Types.TIMESTAMP};
            String[] keys = {"ward", "floor", "urgent", "day", "hour"};
            for (int index = 0; index < keys.length; index++) {
                ResultSet rows = statement.executeQuery(QUESTION.replace("ward", keys[index]));
                ResultSetMetaData columns = rows.getMetaData();
                same(keys[index], columns.getColumnName(1));
                same(types[index], columns.getColumnType(1));
                same(expected[index], column(rows, 1).toString());
            }
            SQLWarning warning = statement.getWarnings();
            same(true, warning.getMessage().startsWith("guarantee: a group that truly qualifies is missed"));
            same("00000", warning.getSQLState());
        }
    }

    private void numbers() throws SQLException {
        for (String threshold : List.of("0", "1")) { // the second by prepared statements, with binary values
            try (Connection connection = connect("prepareThreshold", threshold);
                Statement settings = connection.createStatement()) {
                for (String numbers : List.of("null", "threshold")) {
                    settings.execute("SET keyhole.numbers = '" + numbers + "'");
                    try (PreparedStatement statement = connection.prepareStatement(
                        "SELECT ward, count(*) AS n, round(avg(age), 1) AS mean FROM visits GROUP BY ward"
                            + " HAVING count(*) > 1000 ORDER BY n DESC")) {
                        for (int time = 0; time < 3; time++) {
                            ResultSet rows = statement.executeQuery();
                            same(Types.BIGINT, rows.getMetaData().getColumnType(2));
                            same(Types.NUMERIC, rows.getMetaData().getColumnType(3));
                            for (String ward : List.of("A", "B")) {
                                same(true, rows.next());
                                same(ward, rows.getString("ward"));
                                same(numbers.equals("null") ? null : 1001L, rows.getObject("n"));
                                same(null, rows.getBigDecimal("mean"));
                            }
                            same(false, rows.next());
                        }
                    }
                }
            }
        }
    }

    private void parameters() throws SQLException {
        for (String threshold : List.of("0", "1", "2")) {
            try (Connection connection = connect("prepareThreshold", threshold);
                PreparedStatement statement = connection.prepareStatement(ASKED)) {
                same(List.of(Types.INTEGER, Types.DATE, Types.BIGINT), List.of(
                    statement.getParameterMetaData().getParameterType(1),
                    statement.getParameterMetaData().getParameterType(2),
                    statement.getParameterMetaData().getParameterType(3)));
                for (int time = 0; time < 4; time++) {
                    statement.setInt(1, 0);
                    statement.setObject(2, LocalDate.of(2026, 1, 1));
                    statement.setLong(3, time == 3 ? 2500 : 1000);
                    same(time == 3 ? "[A]" : "[A, B]", column(statement.executeQuery(), 1).toString());
                }
            }
        }
        for (String mode : List.of("simple", "extended", "extendedForPrepared", "extendedCacheEverything")) {
            try (Connection connection = connect("preferQueryMode", mode);
                PreparedStatement statement = connection.prepareStatement(
                    "SELECT ward FROM visits WHERE ward = ANY (?) GROUP BY ward HAVING count(*) > 1000 ORDER BY 1")) {
                for (int time = 0; time < 7; time++) {
                    statement.setArray(1, connection.createArrayOf("text", new Object[] {"A", "D"}));
                    same("[A]", column(statement.executeQuery(), 1).toString());
                }
            }
        }
        for (String mode : List.of("simple", "extended")) {
            try (Connection connection = connect("preferQueryMode", mode);
                PreparedStatement statement = connection.prepareStatement(
                    "SELECT ward FROM visits WHERE day >= ? AND age >= ? AND cost > ? AND hour < ?"
                        + " GROUP BY ward HAVING count(*) > ? ORDER BY ward")) {
                statement.setDate(1, Date.valueOf("2026-01-01"));
                statement.setFloat(2, 0.0f);
                statement.setDouble(3, 5.5);
                statement.setObject(4, LocalDateTime.of(2026, 2, 1, 0, 0));
                statement.setShort(5, (short) 1000);
                same("[A, B]", column(statement.executeQuery(), 1).toString());
            }
        }
        for (String mode : List.of("simple", "extended")) {
            try (Connection connection = connect("preferQueryMode", mode);
                PreparedStatement statement = connection.prepareStatement(
                    "SELECT ward FROM visits WHERE ward IN (?,?) GROUP BY ward HAVING count(*)>? ORDER BY 1")) {
                statement.setString(1, "A");
                statement.setString(2, "D");
                statement.setLong(3, 1000);
                same("[A]", column(statement.executeQuery(), 1).toString());
            }
        }
        try (Connection connection = connect();
            PreparedStatement statement = connection.prepareStatement(ASKED)) {
            statement.setInt(1, 0);
            statement.setDate(2, Date.valueOf("2026-01-01"));
            statement.setBigDecimal(3, new BigDecimal("1000"));
            same("[A, B]", column(statement.executeQuery(), 1).toString());
        }
    }

    private void refusals() throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            for (int time = 0; time < 2; time++) {
                PSQLException refused = refused(statement, REFUSED);
                same("42501", refused.getSQLState());
                ServerErrorMessage told = refused.getServerErrorMessage();
                same("KH103: the private table \"visits\" is used outside a question", told.getMessage());
                same("Only a question may read a private table: GROUP BY keys HAVING a threshold is crossed.",
                    told.getDetail());
                same("Instead you can ask: SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000;", told.getHint());
                same(17, told.getPosition());
                same("0A000", refused(statement, "SELECT ward, count(*) FROM visits GROUP BY ward").getSQLState());
                same("42501", refused(statement, "INSERT INTO wards VALUES ('E', 1)").getSQLState());
            }
            same("[A, B]", column(statement.executeQuery(QUESTION), 1).toString());
            ResultSet beside = statement.executeQuery(QUESTION.replace("ward FROM", "ward, count(*) FROM"));
            same("int8", beside.getMetaData().getColumnTypeName(2));
            same("[null, null]", column(beside, 2).toString());
        }
    }

    private static PSQLException refused(Statement statement, String sql) throws SQLException {
        try {
            statement.execute(sql);
        } catch (PSQLException refused) {
            return refused;
        }
        throw new AssertionError("not refused: " + sql);
    }

    private void metadata() throws SQLException {
        try (Connection connection = connect()) {
            DatabaseMetaData about = connection.getMetaData();
            same("PostgreSQL", about.getDatabaseProductName());
            same("[kinds, visits, wards]",
                column(about.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME").toString());
            same("[busy_days, crowded]",
                column(about.getTables(null, "public", "%", new String[] {"VIEW"}), "TABLE_NAME").toString());
            same("[one row per visit]", column(about.getTables(null, null, "visits", null), "REMARKS").toString());
            same("[ward, floor, urgent, day, hour, age, cost, note]",
                column(about.getColumns(null, "public", "visits", "%"), "COLUMN_NAME").toString());
            same("[text, int4, bool, date, timestamp, int4, numeric, text]",
                column(about.getColumns(null, "public", "visits", "%"), "TYPE_NAME").toString());
            for (String nothing : List.of("SELECT * FROM visits WHERE 1 = 0", "SELECT * FROM visits LIMIT 0")) {
                try (PreparedStatement probe = connection.prepareStatement(nothing)) {
                    same(8, probe.getMetaData().getColumnCount());
                    same("numeric", probe.getMetaData().getColumnTypeName(7));
                    same(false, probe.executeQuery().next());
                }
            }
            ResultSet ward = about.getColumns(null, "public", "visits", "ward");
            same(true, ward.next());
            same("key, public domain of 4 values: A, B, C, D", ward.getString("REMARKS"));
            ResultSet cost = about.getColumns(null, "public", "visits", "cost");
            same(true, cost.next());
            same("10,2", cost.getInt("COLUMN_SIZE") + "," + cost.getInt("DECIMAL_DIGITS"));
            same("[]", column(about.getPrimaryKeys(null, "public", "visits"), "COLUMN_NAME").toString());
            same("[]", column(about.getImportedKeys(null, "public", "visits"), "FKTABLE_NAME").toString());
            same("[]", column(about.getIndexInfo(null, "public", "visits", false, true), "INDEX_NAME").toString());
            same(true, new TreeSet<>(column(about.getTypeInfo(), "TYPE_NAME")).contains("numeric"));
            same(true, column(about.getSchemas(), "TABLE_SCHEM").containsAll(List.of("keyhole", "public")));
            same(true, column(about.getCatalogs(), "TABLE_CAT").contains("clinic"));
            same(true, column(about.getFunctions(null, "public", "%"), "FUNCTION_NAME") != null);
            same(true, column(about.getTablePrivileges(null, "public", "wards"), "PRIVILEGE").contains("SELECT"));
        }
    }

    private void fetching() throws SQLException {
        try (Connection connection = connect()) {
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(1);
                same("[A, B]", column(statement.executeQuery(QUESTION), 1).toString());
                same(250, column(statement.executeQuery("SELECT g FROM generate_series(1, 250) g"), 1).size());
            }
            try (PreparedStatement statement = connection.prepareStatement(ASKED)) {
                for (int time = 0; time < 7; time++) {
                    statement.setFetchSize(1);
                    statement.setInt(1, 0);
                    statement.setObject(2, LocalDate.of(2026, 1, 1));
                    statement.setLong(3, 1000);
                    same("[A, B]", column(statement.executeQuery(), 1).toString());
                }
                statement.setMaxRows(1);
                same("[A]", column(statement.executeQuery(), 1).toString());
            }
            connection.commit();
            try (Statement statement = connection.createStatement(
                    ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY)) {
                ResultSet rows = statement.executeQuery(QUESTION);
                same(true, rows.last());
                same("B", rows.getString(1));
                same(true, rows.absolute(1));
                same("A", rows.getString(1));
            }
            connection.rollback();
        }
    }

    private void transactions() throws SQLException {
        try (Connection connection = connect("autosave", "never")) {
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            connection.setReadOnly(true);
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.execute("SET LOCAL keyhole.tolerance = '20%'");
                var before = connection.setSavepoint();
                refused(statement, REFUSED);
                same("25P02", refused(statement, QUESTION).getSQLState());
                connection.rollback(before);
                same("[20%]", column(statement.executeQuery("SHOW keyhole.tolerance"), 1).toString());
                connection.rollback();
                same("[10%]", column(statement.executeQuery("SHOW keyhole.tolerance"), 1).toString());
                connection.commit();
            }
        }
        try (Connection connection = connect("autosave", "always"); Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            column(statement.executeQuery(QUESTION), 1);
            refused(statement, REFUSED);
            same("[A, B]", column(statement.executeQuery(QUESTION), 1).toString());
            connection.commit();
        }
    }

    private void batches() throws SQLException {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            statement.addBatch("SET keyhole.tolerance = '20%'");
            statement.addBatch("SET keyhole.fpr = 0.2");
            same(2, statement.executeBatch().length);
            same("[20%]", column(statement.executeQuery("SHOW keyhole.tolerance"), 1).toString());
            statement.addBatch("SET keyhole.tolerance = '30%'");
            statement.addBatch("SET keyhole.nothing = 1");
            try {
                statement.executeBatch();
                throw new AssertionError("an unknown setting was taken");
            } catch (java.sql.BatchUpdateException refused) {
                same("42704", refused.getSQLState());
            }
            same(true, statement.execute("SELECT 1; " + QUESTION));
            same("[1]", column(statement.getResultSet(), 1).toString());
            same(true, statement.getMoreResults());
            same("[A, B]", column(statement.getResultSet(), 1).toString());
        }
    }

    private void cancelling() throws Exception {
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            Thread canceller = new Thread(() -> {
                while (!Thread.currentThread().isInterrupted()) {
                    try {
                        statement.cancel();
                        Thread.sleep(50);
                    } catch (SQLException | InterruptedException ended) {
                        return;
                    }
                }
            });
            canceller.start();
            same("57014", refused(statement, "SELECT pg_sleep(600)").getSQLState());
            canceller.interrupt();
            canceller.join();
        }
        try (Connection connection = connect(); Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            same("57014", refused(statement, "SELECT pg_sleep(600)").getSQLState());
            same("[A, B]", column(statement.executeQuery(QUESTION), 1).toString());
        }
    }

    private void copies() throws Exception {
        for (String mode : List.of("simple", "extended")) {
            try (Connection connection = connect("preferQueryMode", mode)) {
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                String copying = "COPY (" + QUESTION + ") TO STDOUT (FORMAT csv, HEADER)";
                same(2L, connection.unwrap(PGConnection.class).getCopyAPI().copyOut(copying, out));
                same("ward\nA\nB\n", out.toString("UTF-8"));
            }
        }
    }

    private void settings() throws SQLException {
        try (Connection connection = connect(
                "options", "-c keyhole.tolerance=15%", "ApplicationName", "report", "currentSchema", "public",
                "assumeMinServerVersion", "12", "connectTimeout", "10", "tcpKeepAlive", "true");
            Statement statement = connection.createStatement()) {
            same("[15%]", column(statement.executeQuery("SHOW keyhole.tolerance"), 1).toString());
            same("[report]", column(statement.executeQuery("SHOW application_name"), 1).toString());
            same(true, connection.isValid(5));
            connection.setClientInfo("ApplicationName", "another");
            same("another", connection.getClientInfo("ApplicationName"));
            connection.setSchema("public");
            same("public", connection.getSchema());
            same(true, connection.unwrap(PGConnection.class).getBackendPID() > 0);
            same(true, PGProperty.PREPARE_THRESHOLD.getDefaultValue() != null);
        }
    }
}
