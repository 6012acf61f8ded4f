// ZenStack 3 with its policy plugin and its server's RPC handler, on Fastify: the rows of a caller are the `@@allow` of the model, input is
// checked by the attributes of its fields. The handler speaks its own dialect (`order/findMany?q=…`), so the routes here only translate
// addresses. Arguments: the database, the peers' folder.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fastify as createFastify, type FastifyRequest } from 'fastify';
import { uuidv7 } from 'kit/db';
import { serving } from '../../../harness/server-process.ts';
import { callerOf } from '../shop.ts';
import { loadPeer } from './load-peer.ts';

const MODEL = `
datasource db {
  provider = 'postgresql'
}
plugin policy {
  provider = '@zenstackhq/plugin-policy'
}
type Auth {
  id String @id
  @@auth
}
model Order {
  id String @id @db.Uuid
  owner_id String @db.Uuid
  customer_id String? @db.Uuid
  item String @length(1, 120)
  status String @default('open')
  quantity Int @gte(1) @lte(1000)
  total Decimal
  note String? @length(0, 500)
  created_at DateTime @default(now())
  updated_at DateTime @updatedAt
  version Int @default(1)
  @@map('orders')
  @@allow('all', auth().id == owner_id)
}
`;

const [database = '', folder = ''] = process.argv.slice(2);

/** What its command line tool makes of the model: a module that says the schema. */
async function generatedSchema(): Promise<unknown> {
  const place = join(folder, 'orders');
  const file = join(place, 'schema.ts');
  if (!existsSync(file)) {
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'schema.zmodel'), MODEL);
    const tool = join(folder, 'node_modules/@zenstackhq/cli/bin/cli');
    const made = spawnSync(process.execPath, [tool, 'generate', '--schema', join(place, 'schema.zmodel'), '--output', place], {
      cwd: folder,
      encoding: 'utf8',
    });
    if (made.status !== 0) throw new Error(`zen generate: ${made.stdout}${made.stderr}`);
    // `declare` fields and parameter properties aside, Node strips the types by itself.
    writeFileSync(file, readFileSync(file, 'utf8'));
  }
  const { schema } = (await import(pathToFileURL(file).href)) as { schema: unknown };
  return schema;
}

const schema = await generatedSchema();
const { ZenStackClient } = await loadPeer(folder, '@zenstackhq/orm');
const { PostgresDialect } = await loadPeer(folder, '@zenstackhq/orm/dialects/postgres');
const { PolicyPlugin } = await loadPeer(folder, '@zenstackhq/plugin-policy');
const { RPCApiHandler } = await loadPeer(folder, '@zenstackhq/server/api');
const { default: pg } = (await loadPeer(folder, 'pg')) as { default: { Pool: new (options: object) => object } };

const client = new ZenStackClient(schema, {
  dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: database, max: 16 }) }),
}).$use(new PolicyPlugin());
const handler = new RPCApiHandler({ schema });

interface HandledResponse {
  readonly status: number;
  readonly body: { readonly data?: unknown };
}

async function handle(request: FastifyRequest, method: string, operation: string, given: object): Promise<HandledResponse> {
  const caller = callerOf(request.headers.authorization);
  if (caller === null) return { status: 401, body: {} };
  const query = method === 'get' || method === 'delete' ? { q: JSON.stringify(given) } : {};
  return (await handler.handleRequest({
    client: client.$setAuth({ id: caller.id }),
    method,
    path: `order/${operation}`,
    query,
    ...(method === 'get' || method === 'delete' ? {} : { requestBody: given }),
  })) as HandledResponse;
}

const server = createFastify();
type Query = Readonly<Record<string, string>>;
server.get('/v1/orders', async (request, reply) => {
  const { limit = '50', offset = '0', ...filters } = request.query as Query;
  const where = Object.fromEntries(
    Object.entries(filters).map(([name, value]) => {
      const [column = '', operator] = name.split('__');
      return [column, operator === undefined ? value : { [operator]: Number(value) }];
    }),
  );
  const { status, body } = await handle(request, 'get', 'findMany', {
    where,
    orderBy: [{ created_at: 'desc' }, { id: 'desc' }],
    take: Number(limit),
    skip: Number(offset),
  });
  return reply.code(status).send(body.data ?? body);
});
server.get('/v1/orders/:id', async (request, reply) => {
  const { status, body } = await handle(request, 'get', 'findUnique', { where: request.params });
  return body.data === null ? reply.code(404).send({ code: 'not_found' }) : reply.code(status).send(body.data ?? body);
});
server.post('/v1/orders', async (request, reply) => {
  const owner = callerOf(request.headers.authorization)?.id;
  const data = { id: uuidv7(), owner_id: owner, ...(request.body as object) };
  const { status, body } = await handle(request, 'post', 'create', { data });
  return reply.code(status).send(body.data ?? body);
});
server.patch('/v1/orders/:id', async (request, reply) => {
  const { status, body } = await handle(request, 'patch', 'update', { where: request.params, data: request.body });
  return reply.code(status).send(body.data ?? body);
});
await server.listen({ port: 0, host: '127.0.0.1' });
serving((server.server.address() as AddressInfo).port);
