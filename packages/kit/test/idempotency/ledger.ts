import { z } from 'zod';
import type { Module } from '../../src/app/declare/module.ts';
import { createTable, insert, migration, model, t, type Db } from '../../src/db/index.ts';
import { coreErrors } from '../../src/errors/core-errors.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { Controller, raw, route } from '../../src/http/index.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import type { TestAppOptions } from '../../src/testing/test-app.ts';
import { startShop, type ShopApp } from '../crud/shop.ts';

/** Payments that must not be made twice. */
export const payments = model('payments', { id: t.uuidv7().pk(), account: t.text(40), amount: t.int() });

/** What the next requests do on their way; for tests. */
export const steps: { before: (() => unknown) | undefined; after: ((tx: Db) => unknown) | undefined } = {
  before: undefined,
  after: undefined,
};

const Payment = z.object({ account: z.string(), amount: z.number().int(), note: z.string().optional() });
const Paid = z.object({ id: z.string(), amount: z.number(), note: z.string().optional() });
const options = { body: Payment, response: Paid, status: 201, permission: isAuthenticated, atomic: true } as const;

async function pay(tx: Db, { account, amount }: z.infer<typeof Payment>) {
  await steps.before?.();
  if (amount === 0) throw coreErrors.conflict({ detail: 'Nothing to pay.' });
  if (amount < 0) throw new Error('a bug');
  const row = await insert(tx, payments, { account, amount });
  await steps.after?.(tx);
  return row;
}

export class PaymentController extends Controller {
  create = route.post('/', { ...options, idempotent: true }, async ({ tx, body, reply }) => {
    const { id, amount } = await pay(tx, body);
    reply.header('location', `payments/${id}`);
    return { id, amount, ...(body.note === undefined ? {} : { note: body.note }) };
  });

  required = route.post('/required', { ...options, idempotent: 'required' }, async ({ tx, body }) => pay(tx, body));

  secret = route.post(
    '/secret',
    { ...options, response: z.object({ id: z.string(), secret: z.string().meta({ 'x-sensitive': true }) }), idempotent: true },
    async ({ tx, body }) => ({ id: (await pay(tx, body)).id, secret: 'shown once' }),
  );

  /** Bytes that are called JSON and are not, of a type without a character set. */
  bytes = route.post('/bytes', { ...options, response: raw('application/json'), idempotent: true }, async ({ tx, body }) => {
    await pay(tx, body);
    return Buffer.from([0x22, 0xff, 0xfe, 0x22]);
  });

  remove = route.delete('/:id', { permission: isAuthenticated, atomic: true, idempotent: true }, async ({ tx, params }) => {
    const { count } = await tx.execute('delete from payments where id = $1', [params.id]);
    if (count === 0) throw coreErrors.not_found();
  });

  serializable = route.post(
    '/serializable',
    { ...options, atomic: { isolation: 'serializable', retries: 20 }, idempotent: true },
    async ({ tx, body, reply }) => {
      reply.header('vary', [reply.getHeader('vary'), 'x'].filter((value) => value !== undefined).join(', '));
      await tx.query('select sum(amount) as sum from payments where account = $1', [body.account]);
      return pay(tx, body);
    },
  );

  plain = route.post('/plain', { body: Payment, permission: isAuthenticated }, ({ tx }) => void tx);
}

/** Rows whose creation calls no code of the application. */
export const memos = model('memos', { id: t.uuidv7().pk(), title: t.text(40) });
class MemoController extends CrudController(resource(memos, { unscoped: true }), { permission: isAuthenticated }) {}

const ledger: Module = {
  name: 'ledger',
  models: [payments, memos],
  migrations: [migration('0001_initial', [createTable('payments', payments.columns), createTable('memos', memos.columns)])],
};

export function startLedger(more: Partial<TestAppOptions> = {}): Promise<ShopApp> {
  return startShop({ mount: { '/v1': { '/payments': PaymentController, '/memos': MemoController } }, modules: [ledger], ...more });
}
