// Three tables of cards with the same columns, two of them with live lists, one of these by triggers, in one application: node cards.ts <database>
import type { AddressInfo } from 'node:net';
import { CrudController, resource } from '../../../packages/kit/src/crud/index.ts';
import { createTable, migration, model, openDatabase, t, timestamps, versioned } from '../../../packages/kit/src/db/index.ts';
import { isAuthenticated } from '../../../packages/kit/src/permissions/index.ts';
import { startCrudApp } from '../../harness/crud-app.ts';
import { serving } from '../../harness/server-process.ts';

const columns = {
  id: t.uuidv7().pk(),
  room: t.text(20),
  title: t.text(80),
  body: t.text(400).nullable(),
  ...timestamps(),
  ...versioned(),
};
const indexes = { indexes: [{ columns: ['room', 'id'] }] };
const plainCards = model('plain_cards', columns, indexes);
const cards = model('cards', columns, indexes);
const triggerCards = model('trigger_cards', columns, indexes);

const options = { permission: isAuthenticated, filters: { room: ['eq'] } } as const;
const rules = { unscoped: true, version: 'version' } as const;
class PlainController extends CrudController(resource(plainCards, rules), options) {}
class TriggerController extends CrudController(resource(triggerCards, { ...rules, changes: 'trigger' }), { ...options, live: true }) {}
class CardController extends CrudController(resource(cards, rules), { ...options, live: true }) {}

const [database = ''] = process.argv.slice(2);
const app = await startCrudApp({
  database: await openDatabase(database, { poolMax: 16 }),
  modules: [
    {
      name: 'cards',
      models: [plainCards, cards, triggerCards],
      migrations: [
        migration('0001_initial', [
          createTable('plain_cards', columns, indexes),
          createTable('cards', columns, indexes),
          createTable('trigger_cards', columns, indexes),
        ]),
      ],
    },
  ],
  mount: { '/v1': { '/plain': PlainController, '/live': CardController, '/triggers': TriggerController } },
});
await app.listen({ port: 0 });
serving((app.fastify.server.address() as AddressInfo).port);
