// The reference implementation of Iceberg's REST catalog, on the loopback interface, over a JDBC catalog.
//
//     java -cp 'rest-jars/*' RestCatalog.java PORT PROPERTIES
//
// PROPERTIES is a file of catalog properties: `uri` (JDBC), `warehouse`, and what the warehouse's store needs.

import java.io.FileReader;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;

public class RestCatalog {
  public static void main(String[] args) throws Exception {
    Properties file = new Properties();
    try (FileReader reader = new FileReader(args[1])) {
      file.load(reader);
    }
    Map<String, String> properties = new HashMap<>();
    file.stringPropertyNames().forEach(name -> properties.put(name, file.getProperty(name)));
    JdbcCatalog catalog = new JdbcCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize("rest", properties);

    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    // Names of namespaces and tables travel in paths, percent-encoded slashes and the like among them.
    context.getServletHandler().setDecodeAmbiguousURIs(true);
    Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    server.getConnectors()[0].getConnectionFactory(HttpConnectionFactory.class).getHttpConfiguration()
        .setUriCompliance(UriCompliance.UNSAFE);
    server.setHandler(context);
    server.start();
    server.join();
  }
}
