import { createHash, randomUUID } from 'node:crypto';
import { and, desc, eq, lt, sql } from 'drizzle-orm';
import type { FastifyInstance } from 'fastify';
import { v7 as uuidv7 } from 'uuid';
import { authenticate, type Caller } from './caller.ts';
import { db, type Transaction } from './database.ts';
import { auditEntries, endpoints, idempotencyKeys, orders } from './schema.ts';

type Order = typeof orders.$inferSelect;
interface Changes {
  item?: string;
  quantity?: number;
  note?: string | null;
}

const fields = {
  item: { type: 'string', minLength: 1, maxLength: 120 },
  quantity: { type: 'integer', minimum: 1, maximum: 1000 },
  note: { type: ['string', 'null'], maxLength: 500 },
};
const date = { type: 'string', format: 'date-time' };
const orderSchema = {
  type: 'object',
  properties: { id: { type: 'string' }, ...fields, status: { type: 'string' }, created_at: date, updated_at: date },
};
const pageSchema = {
  type: 'object',
  properties: { items: { type: 'array', items: orderSchema }, next: { type: ['string', 'null'] } },
};
const querySchema = {
  type: 'object',
  properties: {
    status: { enum: ['open', 'paid'] },
    limit: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
    cursor: { type: 'string', format: 'uuid' },
  },
  additionalProperties: false,
};

const present = ({ id, item, quantity, note, status, createdAt, updatedAt }: Order) => ({
  id,
  item,
  quantity,
  note,
  status,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
});

async function record(tx: Transaction, caller: Caller, action: string, before: object | null, after: { id: string }): Promise<void> {
  const entry = { id: uuidv7(), at: new Date(), actorId: caller.id, keyId: caller.keyId, action, orderId: after.id, before, after };
  await tx.insert(auditEntries).values(entry);
}

/** Jobs are rows of the same transaction: one per endpoint, so that one that is down does not make the other wait. */
async function announce(tx: Transaction, caller: Caller, type: string, data: object): Promise<void> {
  const event = JSON.stringify({ id: `evt_${randomUUID()}`, type, timestamp: new Date().toISOString(), data });
  await tx.execute(sql`
    select graphile_worker.add_job('deliver', json_build_object('endpoint', id, 'event', ${event}::json), max_attempts := 10)
    from ${endpoints} where owner_id = ${caller.id}`);
}

export async function orderRoutes(app: FastifyInstance): Promise<void> {
  app.addHook('onRequest', authenticate);

  app.post<{ Body: Required<Changes>; Headers: { 'idempotency-key'?: string } }>(
    '/',
    {
      schema: {
        body: { type: 'object', properties: fields, required: ['item', 'quantity'], additionalProperties: false },
        response: { 201: orderSchema },
      },
    },
    async ({ body, caller, headers: { 'idempotency-key': key } }, reply) => {
      const now = new Date();
      const values = { id: uuidv7(), ownerId: caller.id, ...body, note: body.note ?? null, createdAt: now, updatedAt: now };
      const response = present({ ...values, status: 'open' });
      const digest = createHash('sha256')
        .update(JSON.stringify([body.item, body.quantity, body.note]))
        .digest('hex');
      const isNew = await db.transaction(async (tx) => {
        if (key !== undefined) {
          const claim = { ownerId: caller.id, key, digest, response, createdAt: now };
          const claimed = await tx.insert(idempotencyKeys).values(claim).onConflictDoNothing().returning({ key: idempotencyKeys.key });
          if (claimed.length === 0) return false;
        }
        await tx.insert(orders).values(values);
        await record(tx, caller, 'order.created', null, response);
        await announce(tx, caller, 'order.created', response);
        return true;
      });
      if (isNew || key === undefined) return reply.code(201).send(response);
      const mine = and(eq(idempotencyKeys.ownerId, caller.id), eq(idempotencyKeys.key, key));
      const [stored] = await db.select().from(idempotencyKeys).where(mine);
      if (stored?.digest !== digest) return reply.code(422).send({ error: 'this key was used with another body' });
      return reply.code(201).send(stored.response);
    },
  );

  app.get<{ Querystring: { status?: 'open' | 'paid'; limit: number; cursor?: string } }>(
    '/',
    { schema: { querystring: querySchema, response: { 200: pageSchema } } },
    async ({ query: { status, limit, cursor }, caller }) => {
      const rows = await db
        .select()
        .from(orders)
        .where(and(eq(orders.ownerId, caller.id), status && eq(orders.status, status), cursor ? lt(orders.id, cursor) : undefined))
        .orderBy(desc(orders.id))
        .limit(limit + 1);
      const items = rows.slice(0, limit).map(present);
      return { items, next: rows.length > limit ? items.at(-1)?.id : null };
    },
  );

  app.patch<{ Body: Changes; Params: { id: string } }>(
    '/:id',
    {
      schema: {
        params: { type: 'object', properties: { id: { type: 'string', format: 'uuid' } } },
        body: { type: 'object', properties: fields, additionalProperties: false, minProperties: 1 },
        response: { 200: orderSchema },
      },
    },
    async ({ body, caller, params: { id } }, reply) => {
      const response = await db.transaction(async (tx) => {
        const mine = and(eq(orders.id, id), eq(orders.ownerId, caller.id));
        const [before] = await tx.select().from(orders).where(mine).for('update');
        if (before === undefined) return null;
        const [after] = await tx
          .update(orders)
          .set({ ...body, updatedAt: new Date() })
          .where(mine)
          .returning();
        const changed = present(after!);
        await record(tx, caller, 'order.updated', present(before), changed);
        await announce(tx, caller, 'order.updated', { ...changed, previous: present(before) });
        return changed;
      });
      return response === null ? reply.code(404).send({ error: 'not found' }) : response;
    },
  );
}
