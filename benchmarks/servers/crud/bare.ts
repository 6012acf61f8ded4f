// The same by hand, without a toolkit: Fastify with its own validation, and the driver with prepared statements (`pg` by name, `node:sqlite`).
// The owner is part of every condition, pages go by keyset, versions decide If-Match.
import { createHash } from 'node:crypto';
import type { Server } from 'node:http';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { fastify as createFastify, type FastifyReply, type FastifyRequest } from 'fastify';
import { uuidv7 } from 'kit/db';
import pg from 'pg';
import { callerOf, hasScope, ORDER_COLUMNS, STATUSES } from './shop.ts';

type Row = Record<string, unknown>;
/** `$1`, `$2`, … in the order of the values. */
type Query = (text: string, values: readonly unknown[]) => Row[] | Promise<Row[]>;

function postgresQuery(url: string): Query {
  const pool = new pg.Pool({ connectionString: url, max: 16 });
  const names = new Map<string, string>();
  return async (text, values) => {
    let name = names.get(text);
    if (name === undefined) names.set(text, (name = createHash('sha256').update(text).digest('hex').slice(0, 32)));
    return (await pool.query<Row>({ name, text, values: [...values] })).rows;
  };
}

function sqliteQuery(file: string): Query {
  const connection = new DatabaseSync(file);
  connection.exec('pragma journal_mode = wal; pragma synchronous = normal; pragma foreign_keys = on');
  const statements = new Map<string, StatementSync>();
  return (text, values) => {
    let statement = statements.get(text);
    if (statement === undefined) statements.set(text, (statement = connection.prepare(text.replaceAll(/\$\d+/g, '?'))));
    return statement.all(...(values as (string | number | null)[]));
  };
}

/** Listens on a port of its own. */
export async function startByHand(database: string): Promise<Server> {
  const isPostgres = database.startsWith('postgres');
  const query = isPostgres ? postgresQuery(database) : sqliteQuery(database.slice('sqlite:'.length));
  const columns = ORDER_COLUMNS.map((name) => `"${name}"`).join(', ');
  const qualified = ORDER_COLUMNS.map((name) => `o."${name}"`).join(', ');
  const now = () => (isPostgres ? new Date() : new Date().toISOString());

  const server = createFastify({ ajv: { customOptions: { removeAdditional: false, coerceTypes: false } } });
  server.setErrorHandler((error: { validation?: unknown; message: string }, _request, reply) =>
    error.validation === undefined
      ? reply.code(500).send({ code: 'internal_error' })
      : reply.code(422).send({ code: 'validation_error', detail: error.message }),
  );

  function admit(needed: string) {
    return (request: FastifyRequest, reply: FastifyReply, done: () => void) => {
      const caller = callerOf(request.headers.authorization);
      if (caller === null) void reply.code(401).send({ code: 'not_authenticated' });
      else if (!hasScope(needed)) void reply.code(403).send({ code: 'permission_denied' });
      else {
        (request as FastifyRequest & { owner: string }).owner = caller.id;
        done();
      }
    };
  }
  const ownerOf = (request: FastifyRequest): string => (request as FastifyRequest & { owner: string }).owner;

  const params = { type: 'object', properties: { id: { type: 'string', format: 'uuid' } }, required: ['id'] };
  const fields = {
    customer_id: { type: ['string', 'null'], format: 'uuid' },
    item: { type: 'string', minLength: 1, maxLength: 120 },
    status: { type: 'string', enum: STATUSES },
    quantity: { type: 'integer', minimum: 1, maximum: 1000 },
    total: { type: 'string', pattern: '^-?\\d{1,10}(\\.\\d{1,2})?$' },
    note: { type: ['string', 'null'], maxLength: 500 },
  };
  const creating = { type: 'object', properties: fields, required: ['item', 'quantity', 'total'], additionalProperties: false };
  const changing = { type: 'object', properties: fields, minProperties: 1, additionalProperties: false };
  const listing = {
    type: 'object',
    properties: {
      status: { type: 'string', enum: STATUSES },
      quantity__gte: { type: 'string', pattern: '^\\d{1,9}$' },
      limit: { type: 'string', pattern: '^\\d{1,4}$' },
      cursor: { type: 'string', maxLength: 1000 },
      expand: { type: 'string', enum: ['customer,items'] },
    },
    additionalProperties: false,
  };

  const notFound = (reply: FastifyReply) => reply.code(404).send({ code: 'not_found' });

  function sendRow(request: FastifyRequest, reply: FastifyReply, row: Row): FastifyReply {
    const etag = `"${String(row['version'])}"`;
    reply.header('etag', etag).header('cache-control', 'private, no-cache').header('vary', 'Authorization');
    return request.headers['if-none-match'] === etag ? reply.code(304).send() : reply.send(row);
  }

  server.get<{ Params: { id: string } }>(
    '/v1/orders/:id',
    { onRequest: admit('orders:read'), schema: { params } },
    async (request, reply) => {
      const [row] = await query(`select ${columns} from orders where id = $1 and owner_id = $2`, [request.params.id, ownerOf(request)]);
      return row === undefined ? notFound(reply) : sendRow(request, reply, row);
    },
  );

  interface ListQuery {
    readonly status?: string;
    readonly quantity__gte?: string;
    readonly limit?: string;
    readonly cursor?: string;
    readonly expand?: string;
  }

  server.get<{ Querystring: ListQuery }>(
    '/v1/orders',
    { onRequest: admit('orders:read'), schema: { querystring: listing } },
    async (request, reply) => {
      const { status, quantity__gte, limit: limitText = '50', cursor, expand } = request.query;
      const limit = Number(limitText);
      if (limit < 1 || limit > 1000) return reply.code(422).send({ code: 'validation_error' });
      const owner = ownerOf(request);
      const values: unknown[] = [owner];
      let where = 'o.owner_id = $1';
      if (status !== undefined) where += ` and o.status = $${values.push(status)}`;
      if (quantity__gte !== undefined) where += ` and o.quantity >= $${values.push(Number(quantity__gte))}`;
      if (cursor !== undefined) {
        const [at, id] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [string, string];
        where += ` and (o.created_at, o.id) < ($${values.push(at)}, $${values.push(id)})`;
      }
      const isExpanded = expand !== undefined;
      const selected = isExpanded
        ? `${qualified}, c.id as "customer.id", c.owner_id as "customer.owner_id", c.name as "customer.name"`
        : qualified;
      const joined = isExpanded ? ' left join customers c on c.id = o.customer_id and c.owner_id = o.owner_id' : '';
      const found = await query(
        `select ${selected} from orders o${joined} where ${where} order by o.created_at desc, o.id desc limit $${values.push(limit + 1)}`,
        values,
      );
      const hasMore = found.length > limit;
      const rows = hasMore ? found.slice(0, limit) : found;
      const items = isExpanded ? await expanded(rows, owner) : rows;
      const last = rows.at(-1);
      const next = hasMore && last !== undefined ? `?${linkOf(request.query, last)}` : null;
      if (next !== null) reply.header('link', `<${next}>; rel="next"`);
      return reply.send({ items, next });
    },
  );

  function linkOf({ cursor: _cursor, ...others }: ListQuery, { created_at, id }: Row): string {
    const cursor = Buffer.from(JSON.stringify([created_at, id])).toString('base64url');
    return [`cursor=${cursor}`, ...Object.entries(others).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)].join('&');
  }

  const ITEMS_PER_ORDER = 5;
  const itemColumns = ['id', 'owner_id', 'order_id', 'sku', 'amount'];
  const itemsText = isPostgres
    ? `select i.* from unnest($1::uuid[]) p(id) cross join lateral (select ${itemColumns.join(', ')} from order_items
     where order_id = p.id and owner_id = $2 order by sku, id limit ${ITEMS_PER_ORDER + 1}) i`
    : `select ${itemColumns.map((name) => `i.${name}`).join(', ')} from json_each($1) p join order_items i where i.rowid in
     (select rowid from order_items where order_id = p.value and owner_id = $2 order by sku, id limit ${ITEMS_PER_ORDER + 1}) order by p.key, i.sku, i.id`;

  async function expanded(rows: readonly Row[], owner: string): Promise<Row[]> {
    const keys = rows.map(({ id }) => id);
    const children = await query(itemsText, [isPostgres ? keys : JSON.stringify(keys), owner]);
    const byOrder = new Map<unknown, Row[]>(keys.map((id) => [id, []]));
    for (const child of children) byOrder.get(child['order_id'])?.push(child);
    return rows.map((row) => {
      const item: Row = {};
      for (const name of ORDER_COLUMNS) item[name] = row[name];
      const items = byOrder.get(row['id']) as Row[];
      item['customer'] =
        row['customer.id'] === null ? null : { id: row['customer.id'], owner_id: row['customer.owner_id'], name: row['customer.name'] };
      item['items'] = items.length > ITEMS_PER_ORDER ? items.slice(0, ITEMS_PER_ORDER) : items;
      if (items.length > ITEMS_PER_ORDER) item['items_more'] = true;
      return item;
    });
  }

  server.post<{ Body: Row }>('/v1/orders', { onRequest: admit('orders:write'), schema: { body: creating } }, async (request, reply) => {
    const { body } = request;
    const at = now();
    const row: Row = { id: uuidv7(), owner_id: ownerOf(request), ...body, created_at: at, updated_at: at, version: 1 };
    const names = Object.keys(row);
    const places = names.map((_, index) => `$${index + 1}`).join(', ');
    const [made] = await query(`insert into orders (${names.join(', ')}) values (${places}) returning ${columns}`, Object.values(row));
    reply.code(201).header('location', `orders/${row['id'] as string}`);
    return sendRow(request, reply, made as Row);
  });

  server.patch<{ Params: { id: string }; Body: Row }>(
    '/v1/orders/:id',
    { onRequest: admit('orders:write'), schema: { params, body: changing } },
    async (request, reply) => {
      const { body } = request;
      const values: unknown[] = [];
      const set = Object.keys(body).map((name) => `${name} = $${values.push(body[name])}`);
      set.push(`updated_at = $${values.push(now())}`, 'version = version + 1');
      let where = `id = $${values.push(request.params.id)} and owner_id = $${values.push(ownerOf(request))}`;
      const ifMatch = request.headers['if-match'];
      if (ifMatch !== undefined) where += ` and version = $${values.push(Number(ifMatch.replaceAll('"', '')))}`;
      const [row] = await query(`update orders set ${set.join(', ')} where ${where} returning ${columns}`, values);
      if (row !== undefined) return sendRow(request, reply, row);
      return ifMatch === undefined ? notFound(reply) : reply.code(412).send({ code: 'precondition_failed' });
    },
  );

  await server.listen({ port: 0, host: '127.0.0.1' });
  return server.server;
}
