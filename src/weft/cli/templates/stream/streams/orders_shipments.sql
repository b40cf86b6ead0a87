-- Which orders were shipped within a day, which were not, and which shipments have no order?

CREATE STREAM orders (
  order_id STRING, customer_id INT, total_amount DECIMAL(10,2), status STRING, event_time TIMESTAMP
) WITH ('connector'='files', 'path'='data/orders.csv', 'format'='csv',
        'event.time.field'='event_time', 'event.time.format'='epoch_millis', 'watermark.max_out_of_orderness'='30s');

CREATE STREAM shipments (
  shipment_id STRING, order_id STRING, carrier STRING, tracking_number STRING, event_time TIMESTAMP
) WITH ('connector'='files', 'path'='data/shipments.csv', 'format'='csv',
        'event.time.field'='event_time', 'event.time.format'='epoch_millis', 'watermark.max_out_of_orderness'='30s');

CREATE STREAM order_status
WITH ('connector'='files', 'path'='out/order_status', 'format'='csv')
AS SELECT COALESCE(o.order_id, s.order_id) AS order_id, o.total_amount, s.shipment_id,
          CASE WHEN o.order_id IS NULL THEN 'ORPHAN_SHIPMENT' WHEN s.order_id IS NULL THEN 'UNSHIPPED_ORDER' ELSE 'MATCHED' END AS status
   FROM orders o
   FULL OUTER JOIN shipments s
     ON o.order_id = s.order_id AND s.event_time BETWEEN o.event_time AND o.event_time + INTERVAL '24' HOUR
EMIT CHANGES;
