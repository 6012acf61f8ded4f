// Run in a project with the packed kit and one version of a library: node publish-through.mjs <library> <database URL>. A committed
// transaction of the library leaves its order, the event and the delivery; a rolled-back one leaves nothing; after the end publish is refused.
import assert from 'node:assert/strict';
import { allowAny, Controller, createApp, migrateApp, route } from 'kit';
import {
  betterSqlite3Transaction,
  createEndpoint,
  drizzleTransaction,
  mikroOrmTransaction,
  prismaTransaction,
  publish,
  publishSync,
  typeOrmTransaction,
  webhooks,
} from 'kit/contrib/webhooks';

const [, , library, url] = process.argv;
const isPostgres = url.startsWith('postgres');
const path = url.replace(/^sqlite:/, '');

/** Each opens the library: `transact(order, work)` stores an order in a transaction and calls `work` with the adapter; `work` may throw. */
const libraries = {
  async 'better-sqlite3'() {
    const { default: Database } = await import('better-sqlite3');
    const file = new Database(path);
    return {
      transact: async (order, work) =>
        file.transaction(() => {
          file.prepare('insert into orders values (?, ?)').run(order, '12.00');
          work(betterSqlite3Transaction(file));
        })(),
      publish: publishSync,
      close: () => file.close(),
    };
  },

  async 'drizzle-orm'() {
    const { sql } = await import('drizzle-orm');
    const { Pool } = await import('pg');
    const { drizzle } = await import('drizzle-orm/node-postgres');
    const { integer, pgTable, text } = await import('drizzle-orm/pg-core');
    const orders = pgTable('orders', { id: integer().primaryKey(), total: text().notNull() });
    const pool = new Pool({ connectionString: url });
    return {
      transact: (order, work) =>
        drizzle(pool).transaction(async (tx) => {
          await tx.insert(orders).values({ id: order, total: '12.00' });
          await work(drizzleTransaction(tx, sql));
        }),
      close: () => pool.end(),
    };
  },

  async '@mikro-orm/core'() {
    const { defineEntity, p } = await import('@mikro-orm/core');
    const { MikroORM } = await import(isPostgres ? '@mikro-orm/postgresql' : '@mikro-orm/sqlite');
    const Order = defineEntity({ name: 'Order', tableName: 'orders', properties: { id: p.integer().primary(), total: p.string() } });
    const orm = await MikroORM.init(isPostgres ? { clientUrl: url, entities: [Order] } : { dbName: path, entities: [Order] });
    return {
      transact: (order, work) =>
        orm.em.fork().transactional(async (em) => {
          em.create(Order, { id: order, total: '12.00' });
          await work(mikroOrmTransaction(em));
        }),
      close: () => orm.close(),
    };
  },

  async '@prisma/client'() {
    const { readFileSync } = await import('node:fs');
    const { PrismaPg } = await import('@prisma/adapter-pg');
    const { getPrismaClient } = await import('@prisma/client/runtime/client');
    const { version } = JSON.parse(readFileSync('node_modules/@prisma/client/package.json', 'utf8'));
    const part = (name) => import(import.meta.resolve(`@prisma/client/runtime/query_compiler_fast_bg.${name}.mjs`));
    const Client = getPrismaClient({
      ...JSON.parse(readFileSync('orders.json', 'utf8')),
      previewFeatures: [],
      clientVersion: version,
      engineVersion: version,
      activeProvider: 'postgresql',
      inlineSchema: `datasource db {\n  provider = "postgresql"\n}\n\nmodel Order {\n  id    Int    @id\n  total String\n\n  @@map("orders")\n}\n`,
      compilerWasm: {
        getRuntime: () => part('postgresql'),
        getQueryCompilerWasmModule: async () => new WebAssembly.Module(Buffer.from((await part('postgresql.wasm-base64')).wasm, 'base64')),
        importName: './query_compiler_fast_bg.js',
      },
    });
    const prisma = new Client({ adapter: new PrismaPg({ connectionString: url }) });
    return {
      transact: (order, work) =>
        prisma.$transaction(async (tx) => {
          await tx.order.create({ data: { id: order, total: '12.00' } });
          await work(prismaTransaction(tx));
        }),
      close: () => prisma.$disconnect(),
    };
  },

  async typeorm() {
    const { DataSource, EntitySchema } = await import('typeorm');
    const columns = { id: { type: Number, primary: true }, total: { type: 'text' } };
    const entities = [new EntitySchema({ name: 'Order', tableName: 'orders', columns })];
    const place = isPostgres ? { type: 'postgres', url } : { type: 'better-sqlite3', database: path };
    const source = await new DataSource({ ...place, entities }).initialize();
    return {
      transact: (order, work) =>
        source.transaction(async (manager) => {
          await manager.insert('Order', { id: order, total: '12.00' });
          await work(typeOrmTransaction(manager));
        }),
      close: () => source.destroy(),
    };
  },
};

class Things extends Controller {
  list = route.get('/', { permission: allowAny }, () => undefined);
}
const app = createApp({
  database: url,
  log: { level: 'silent' },
  modules: [webhooks()],
  mount: { '/v1': { '/things': Things } },
});
await migrateApp(app);
await app.ready();
await app.db.query('create table orders (id integer primary key, total text not null)');
await app.db.transaction((tx) => createEndpoint(tx, { owner: 'ada', url: 'https://example.com/', events: ['order.*'] }));
const rows = async () =>
  Promise.all(
    ['orders', 'webhook_events', 'webhook_deliveries'].map(async (table) => (await app.db.query(`select * from ${table}`)).length),
  );

const { transact, close, publish: send = publish } = await libraries[library]();
let kept;
await transact(1, (tx) => {
  kept = tx;
  return send(tx, 'order.paid', { order: 1 }, { owner: 'ada' });
});
assert.deepEqual(await rows(), [1, 1, 1], 'a committed transaction leaves order, event and delivery');
await assert.rejects(
  transact(2, (tx) => {
    const sent = send(tx, 'order.paid', { order: 2 }, { owner: 'ada' });
    if (!(sent instanceof Promise)) throw new Error('undo');
    return sent.then(() => Promise.reject(new Error('undo')));
  }),
  /undo/,
);
assert.deepEqual(await rows(), [1, 1, 1], 'a rolled-back transaction leaves nothing');
await assert.rejects(async () => send(kept, 'order.paid', { order: 3 }, { owner: 'ada' }), { code: 'no_transaction' });
assert.deepEqual(await rows(), [1, 1, 1], 'after the end nothing is written');
await close();
await app.close();
