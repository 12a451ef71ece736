// Reads Iceberg tables with Iceberg's own Java library and prints what it saw, in the form that all readers share:
// see read.py, which tells the requests, the answers and the canonical texts. A request with "set" commits these
// properties first, to a table that it makes where it is not there.
//
//     java -cp 'readers-jars/*' ReadTable.java <requests.jsonl >answers.jsonl

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.UpdateProperties;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;

public class ReadTable {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      if (line.isBlank()) {
        continue;
      }
      ObjectNode answer = JSON.createObjectNode().put("engine", "java");
      try {
        read(JSON.readTree(line), answer);
      } catch (Exception | LinkageError error) { // the caller compares answers, and a refusal is one
        answer = JSON.createObjectNode().put("engine", "java").put("error", error.toString());
      }
      System.out.println(JSON.writeValueAsString(answer));
    }
  }

  private static void read(JsonNode request, ObjectNode answer) throws Exception {
    Catalog catalog = open(request.get("catalog"));
    try {
      TableIdentifier name = TableIdentifier.parse(request.get("table").asText());
      if (request.has("set")) {
        set(catalog, name, request.get("set"));
      }
      Table table = catalog.loadTable(name);
      readAll(table, answer);
      ArrayNode filters = answer.putArray("filters");
      for (JsonNode filter : request.withArray("filters")) {
        readFiltered(table, expression(filter), filters.addObject());
      }
    } finally {
      ((AutoCloseable) catalog).close();
    }
  }

  // The catalog that PyIceberg's properties describe.
  private static Catalog open(JsonNode given) throws Exception {
    Map<String, String> properties = new HashMap<>();
    given.fields().forEachRemaining(field -> properties.put(field.getKey(), field.getValue().asText()));
    boolean inS3 = properties.containsKey("s3.endpoint");
    String io = inS3 ? "org.apache.iceberg.io.ResolvingFileIO" : "org.apache.iceberg.hadoop.HadoopFileIO";
    properties.put("io-impl", io);
    if (properties.get("type").equals("rest")) {
      RESTCatalog catalog = new RESTCatalog();
      catalog.setConf(new Configuration());
      catalog.initialize(properties.get("name"), properties);
      return catalog;
    }
    String uri = properties.get("uri");
    if (uri.startsWith("sqlite:///")) {
      String file = uri.substring("sqlite:///".length()).replaceFirst("\\?.*", "");
      properties.put("uri", "jdbc:sqlite:" + file + "?busy_timeout=30000");
    } else {
      URI server = new URI("postgresql" + uri.substring(uri.indexOf("://")));
      String[] user = server.getUserInfo().split(":", 2);
      properties.put("uri", "jdbc:postgresql://" + server.getHost() + ":" + server.getPort() + server.getPath());
      properties.put("jdbc.user", user[0]);
      properties.put("jdbc.password", user[1]);
    }
    properties.putIfAbsent("warehouse", "unused");
    JdbcCatalog catalog = new JdbcCatalog(null, null, false); // false: leave the catalog's tables as they are
    catalog.setConf(new Configuration());
    catalog.initialize(properties.get("name"), properties);
    return catalog;
  }

  private static void set(Catalog catalog, TableIdentifier name, JsonNode properties) {
    if (!catalog.tableExists(name)) {
      catalog.createTable(name, new Schema(Types.NestedField.required(1, "id", Types.LongType.get())));
    }
    UpdateProperties update = catalog.loadTable(name).updateProperties();
    properties.fields().forEachRemaining(field -> update.set(field.getKey(), field.getValue().asText()));
    update.commit();
  }

  private static void readAll(Table table, ObjectNode answer) throws Exception {
    Schema schema = table.schema();
    List<Types.NestedField> fields = schema.columns();
    long[] nulls = new long[fields.size()];
    long[] sums = new long[fields.size()];
    long rows = 0;
    try (CloseableIterable<Record> records = IcebergGenerics.read(table).build()) {
      for (Record record : records) {
        rows++;
        for (int i = 0; i < nulls.length; i++) {
          Object value = record.get(i);
          if (value == null) {
            nulls[i]++;
          } else {
            CRC32 crc = new CRC32();
            crc.update(text(fields.get(i).type(), value).getBytes(StandardCharsets.UTF_8));
            sums[i] += crc.getValue();
          }
        }
      }
    }
    answer.put("rows", rows);
    ObjectNode columns = answer.putObject("columns");
    for (int i = 0; i < nulls.length; i++) {
      columns.putObject(fields.get(i).name()).put("nulls", nulls[i]).put("checksum", Long.toString(sums[i]));
    }
  }

  private static void readFiltered(Table table, Expression filter, ObjectNode answer) throws Exception {
    long rows = 0;
    try (CloseableIterable<Record> records = IcebergGenerics.read(table).where(filter).build()) {
      for (Record ignored : records) {
        rows++;
      }
    }
    long files = 0;
    try (CloseableIterable<FileScanTask> tasks = table.newScan().filter(filter).planFiles()) {
      for (FileScanTask ignored : tasks) {
        files++;
      }
    }
    answer.put("rows", rows).put("files", files);
  }

  private static Expression expression(JsonNode filter) {
    String column = filter.get("column").asText();
    JsonNode value = filter.get("value");
    Expression comparison = comparison(column, filter.get("op").asText(), value);
    // The generic reader's comparisons take a null for less than everything; SQL's take it for unknown.
    return value == null || value.isNull() ? comparison : Expressions.and(Expressions.notNull(column), comparison);
  }

  private static Expression comparison(String column, String op, JsonNode value) {
    return switch (op) {
      case "is_null" -> Expressions.isNull(column);
      case "not_null" -> Expressions.notNull(column);
      case "eq" -> Expressions.equal(column, literal(value));
      case "lt" -> Expressions.lessThan(column, literal(value));
      case "lteq" -> Expressions.lessThanOrEqual(column, literal(value));
      case "gt" -> Expressions.greaterThan(column, literal(value));
      case "gteq" -> Expressions.greaterThanOrEqual(column, literal(value));
      default -> throw new IllegalArgumentException("no such comparison: " + op);
    };
  }

  private static Object literal(JsonNode value) {
    if (value.isTextual()) {
      return value.asText();
    }
    if (value.isBoolean()) {
      return value.asBoolean();
    }
    return value.isIntegralNumber() ? (Object) value.asLong() : (Object) value.asDouble();
  }

  private static String text(Type type, Object value) {
    if (value == null) {
      return "null";
    }
    return switch (type.typeId()) {
      case FLOAT, DOUBLE -> String.format("%016x", Double.doubleToLongBits(((Number) value).doubleValue()));
      case DECIMAL -> ((BigDecimal) value).toPlainString();
      case DATE -> Long.toString(((LocalDate) value).toEpochDay());
      case TIME -> Long.toString(((LocalTime) value).toNanoOfDay() / 1000);
      case TIMESTAMP -> Long.toString(sinceEpoch(value, ChronoUnit.MICROS));
      case TIMESTAMP_NANO -> Long.toString(sinceEpoch(value, ChronoUnit.NANOS));
      case BINARY -> hex((ByteBuffer) value);
      case FIXED -> hex(ByteBuffer.wrap((byte[]) value));
      case STRUCT -> structText(type.asStructType(), (StructLike) value);
      case LIST -> listText(type.asListType(), (List<?>) value);
      case MAP -> mapText(type.asMapType(), (Map<?, ?>) value);
      default -> value.toString();
    };
  }

  private static long sinceEpoch(Object value, ChronoUnit unit) {
    OffsetDateTime zero = OffsetDateTime.of(1970, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);
    OffsetDateTime time = value instanceof LocalDateTime local ? local.atOffset(ZoneOffset.UTC) : (OffsetDateTime) value;
    return unit.between(zero, time);
  }

  private static String hex(ByteBuffer bytes) {
    StringBuilder out = new StringBuilder();
    for (int i = bytes.position(); i < bytes.limit(); i++) {
      out.append(String.format("%02x", bytes.get(i)));
    }
    return out.toString();
  }

  private static String structText(Types.StructType type, StructLike value) {
    List<String> parts = new ArrayList<>();
    for (int i = 0; i < type.fields().size(); i++) {
      Types.NestedField field = type.fields().get(i);
      parts.add(field.name() + ":" + text(field.type(), value.get(i, Object.class)));
    }
    return "{" + String.join(",", parts) + "}";
  }

  private static String listText(Types.ListType type, List<?> value) {
    List<String> parts = new ArrayList<>();
    value.forEach(element -> parts.add(text(type.elementType(), element)));
    return "[" + String.join(",", parts) + "]";
  }

  private static String mapText(Types.MapType type, Map<?, ?> value) {
    List<String> parts = new ArrayList<>();
    value.forEach((key, element) -> parts.add(text(type.keyType(), key) + "=" + text(type.valueType(), element)));
    parts.sort(null);
    return "{" + String.join(",", parts) + "}";
  }
}
