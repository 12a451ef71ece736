// The reference implementation of Iceberg's REST catalog, on the loopback interface, over a JDBC catalog.
//
//     java -cp 'rest-jars/*' RestCatalog.java PORT PROPERTIES
//
// PROPERTIES is a file of catalog properties: `uri` (JDBC), `warehouse`, and what the warehouse's store needs. Below the
// path `/@NAME` is another catalog, made at its first request, with its tables in a folder NAME of the warehouse (of
// `s3-warehouse` where NAME begins with `s3-`): tests that use the same names do not meet.

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.FileReader;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
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

    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new Catalogs(properties)), "/*");
    // Names of namespaces and tables travel in paths, percent-encoded slashes and the like among them.
    context.getServletHandler().setDecodeAmbiguousURIs(true);
    Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    server.getConnectors()[0].getConnectionFactory(HttpConnectionFactory.class).getHttpConfiguration()
        .setUriCompliance(UriCompliance.UNSAFE);
    server.setHandler(context);
    server.start();
    server.join();
  }

  /** Hands a request to the catalog that its path names. */
  private static class Catalogs extends HttpServlet {
    private final Map<String, String> properties;
    private final Map<String, HttpServlet> byName = new ConcurrentHashMap<>();

    Catalogs(Map<String, String> properties) {
      this.properties = properties;
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response)
        throws ServletException, IOException {
      String path = request.getRequestURI();
      if (!path.startsWith("/@")) {
        byName.computeIfAbsent("", this::open).service(request, response);
        return;
      }
      int end = path.indexOf('/', 2) < 0 ? path.length() : path.indexOf('/', 2);
      String name = path.substring(2, end);
      byName.computeIfAbsent(name, this::open).service(new HttpServletRequestWrapper(request) {
        @Override
        public String getRequestURI() {
          return path.substring(end);
        }
      }, response);
    }

    private HttpServlet open(String name) {
      Map<String, String> own = new HashMap<>(properties);
      if (!name.isEmpty()) {
        String warehouse = properties.get(name.startsWith("s3-") ? "s3-warehouse" : "warehouse");
        own.put("warehouse", warehouse + "/" + name);
      }
      JdbcCatalog catalog = new JdbcCatalog();
      catalog.setConf(new Configuration());
      catalog.initialize(name.isEmpty() ? "rest" : name, own);
      return new RESTCatalogServlet(new RESTCatalogAdapter(catalog));
    }
  }
}
