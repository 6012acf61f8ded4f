// FeathersJS 5 on Koa with knex, as its generator writes it: a service, schemas for data and queries, hooks that put the owner into every
// query. Arguments: the database, the peers' folder.
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { uuidv7 } from 'kit/db';
import { serving } from '../../../harness/server-process.ts';
import { callerOf, STATUSES } from '../shop.ts';
import { loadPeer } from './load-peer.ts';

const [database = '', folder = ''] = process.argv.slice(2);
const { feathers } = await loadPeer(folder, '@feathersjs/feathers');
const { koa, rest, bodyParser, errorHandler, parseAuthentication } = await loadPeer(folder, '@feathersjs/koa');
const { KnexService } = await loadPeer(folder, '@feathersjs/knex');
const { Ajv, getValidator, hooks: schemaHooks, querySyntax } = await loadPeer(folder, '@feathersjs/schema');
const { NotAuthenticated } = await loadPeer(folder, '@feathersjs/errors');
const { default: makeKnex } = await loadPeer(folder, 'knex');

const knex = makeKnex({ client: 'pg', connection: database, pool: { min: 0, max: 16 } });
const fields = {
  customer_id: { type: ['string', 'null'], maxLength: 36 },
  item: { type: 'string', minLength: 1, maxLength: 120 },
  status: { type: 'string', enum: STATUSES },
  quantity: { type: 'integer', minimum: 1, maximum: 1000 },
  total: { type: 'string', pattern: '^-?\\d{1,10}(\\.\\d{1,2})?$' },
  note: { type: ['string', 'null'], maxLength: 500 },
};
const data = getValidator(
  { $id: 'OrderData', type: 'object', properties: fields, required: ['item', 'quantity', 'total'], additionalProperties: false },
  new Ajv(),
);
const patch = getValidator({ $id: 'OrderPatch', type: 'object', properties: fields, additionalProperties: false }, new Ajv());
const { total: _total, ...filtered } = fields;
const query = getValidator(
  {
    $id: 'OrderQuery',
    type: 'object',
    properties: querySyntax({ ...filtered, id: { type: 'string' }, created_at: { type: 'string' } }),
    additionalProperties: false,
  },
  new Ajv({ coerceTypes: true }),
);

interface HookContext {
  params: { headers: Record<string, string | undefined>; query: Record<string, unknown>; user?: { id: string } };
  data: Record<string, unknown>;
}

const authenticate = async (context: HookContext) => {
  const caller = callerOf(context.params.headers['authorization']);
  if (caller === null) throw new NotAuthenticated();
  context.params.user = caller;
};
const ofOwner = async (context: HookContext) => {
  context.params.query = { ...context.params.query, owner_id: context.params.user?.id };
};
const fill = async (context: HookContext) => {
  const now = new Date();
  context.data = { id: uuidv7(), owner_id: context.params.user?.id, ...context.data, created_at: now, updated_at: now };
};
const touch = async (context: HookContext) => {
  context.data = { ...context.data, updated_at: new Date() };
};

const app = koa(feathers());
app.use(errorHandler());
app.use(parseAuthentication());
app.use(bodyParser());
app.configure(rest());
app.use('v1/orders', new KnexService({ Model: knex, name: 'orders', id: 'id', paginate: { default: 50, max: 1000 } }));
app.service('v1/orders').hooks({
  before: {
    all: [authenticate],
    find: [schemaHooks.validateQuery(query), ofOwner],
    get: [ofOwner],
    create: [schemaHooks.validateData(data), fill],
    patch: [schemaHooks.validateData(patch), ofOwner, touch],
  },
});
const server = (await app.listen(0, '127.0.0.1')) as Server;
if (!server.listening) await once(server, 'listening');
serving((server.address() as AddressInfo).port);
