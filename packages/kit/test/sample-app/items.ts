import * as z from 'zod';
import { createTable, find, insert, list, migration, model, remove, t, update, type Row } from '../../src/db/index.ts';
import { constraintViolation } from '../../src/db/engine/constraint-violation.ts';
import type { Module } from '../../src/app/declare/module.ts';
import { coreErrors } from '../../src/errors/core-errors.ts';
import { Controller } from '../../src/http/compile/controller.ts';
import { page } from '../../src/http/declare/page.ts';
import { route } from '../../src/http/declare/route.ts';
import { allowAny, isAuthenticated } from '../../src/permissions/built-ins.ts';

const columns = {
  id: t.uuidv7().pk(),
  code: t.text({ min: 2, max: 12, pattern: '^[A-Z][A-Z0-9]+$' }).unique(),
  label: t.text(40).nullable(),
  amount: t.int({ min: -1000, max: 1000 }),
  counter: t.bigint(),
  price: t.decimal(12, 2),
  ratio: t.float(),
  active: t.bool(),
  starts_at: t.timestamp(),
  day: t.date(),
  facts: t.json({ type: 'object', additionalProperties: { type: 'number' } }),
  anything: t.json().nullable(),
  picture: t.bytes(),
  state: t.enum(['draft', 'paid', 'sent']).dbDefault('draft'),
  tags: t.array(t.text(10)),
  other: t.uuid().nullable(),
  secret: t.text(60).sensitive().nullable(),
};

/** A column of every kind. */
export const items = model('items', columns);

export const itemsModule: Module = {
  name: 'items',
  models: [items],
  migrations: [migration('0001_initial', [createTable('items', columns)])],
};

const Key = z.strictObject({ id: z.uuid() });

async function refusingDuplicates(work: () => Promise<Row<typeof items>>): Promise<Row<typeof items>> {
  try {
    return await work();
  } catch (error) {
    if (constraintViolation(error)?.kind === 'unique') throw coreErrors.conflict({ cause: error });
    throw error;
  }
}

/** Schemas derived from the model, values through the repository: what generic controllers will do. */
export class ItemController extends Controller {
  list = route.get('/', { response: page(items.output), permission: allowAny }, async ({ db }) => ({
    items: await list(db, items, { limit: 20 }),
    count: null,
  }));

  create = route.post(
    '/',
    { body: items.input, response: items.output, status: 201, permission: isAuthenticated, raises: [coreErrors.conflict] },
    ({ body, db }) => refusingDuplicates(() => insert(db, items, body)),
  );

  retrieve = route.get('/:id', { params: Key, response: items.output, permission: allowAny }, async ({ params, db }) => {
    const row = await find(db, items, params.id);
    if (row === undefined) throw coreErrors.not_found();
    return row;
  });

  change = route.patch(
    '/:id',
    { params: Key, body: items.patch, response: items.output, permission: isAuthenticated, raises: [coreErrors.conflict] },
    async ({ params, body, db }) =>
      refusingDuplicates(async () => {
        const row = await update(db, items, params.id, body);
        if (row === undefined) throw coreErrors.not_found();
        return row;
      }),
  );

  remove = route.delete('/:id', { params: Key, permission: isAuthenticated }, async ({ params, db }) => {
    if (!(await remove(db, items, params.id))) throw coreErrors.not_found();
  });
}
