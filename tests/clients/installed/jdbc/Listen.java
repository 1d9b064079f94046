import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** What pgjdbc hears: `java Listen URL USER PASSWORD CHANNEL` says that it listens, and then the first payloads. */
public final class Listen {
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], arguments[2])) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("LISTEN " + arguments[3]);
            }
            System.out.println("listening");
            PGNotification[] heard = null;
            while (heard == null || heard.length == 0) {
                heard = connection.unwrap(PGConnection.class).getNotifications(10_000);
            }
            for (PGNotification one : heard) {
                System.out.println(one.getParameter());
            }
        }
    }
}
