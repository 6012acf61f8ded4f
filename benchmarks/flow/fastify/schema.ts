import { sql } from 'drizzle-orm';
import { index, integer, jsonb, pgTable, primaryKey, text, timestamp, uuid } from 'drizzle-orm/pg-core';

const at = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' }).notNull();

export const users = pgTable('users', { id: uuid().primaryKey(), name: text().notNull().unique() });

export const apiKeys = pgTable('api_keys', {
  id: uuid().primaryKey(),
  userId: uuid('user_id')
    .notNull()
    .references(() => users.id),
  digest: text().notNull().unique(),
  revokedAt: timestamp('revoked_at', { withTimezone: true }),
});

export const orders = pgTable(
  'orders',
  {
    id: uuid().primaryKey(),
    ownerId: uuid('owner_id').notNull(),
    item: text().notNull(),
    quantity: integer().notNull(),
    note: text(),
    status: text({ enum: ['open', 'paid'] })
      .notNull()
      .default('open'),
    createdAt: at('created_at'),
    updatedAt: at('updated_at'),
  },
  (table) => [index().on(table.ownerId, table.status, sql`${table.id} desc`)],
);

export const auditEntries = pgTable(
  'audit_entries',
  {
    id: uuid().primaryKey(),
    at: at('at'),
    actorId: uuid('actor_id').notNull(),
    keyId: uuid('key_id').notNull(),
    action: text().notNull(),
    orderId: uuid('order_id').notNull(),
    before: jsonb(),
    after: jsonb(),
  },
  (table) => [index().on(table.orderId)],
);

export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    ownerId: uuid('owner_id').notNull(),
    key: text().notNull(),
    digest: text().notNull(),
    response: jsonb().notNull(),
    createdAt: at('created_at'),
  },
  (table) => [primaryKey({ columns: [table.ownerId, table.key] })],
);

export const endpoints = pgTable(
  'endpoints',
  { id: uuid().primaryKey(), ownerId: uuid('owner_id').notNull(), url: text().notNull(), secret: text().notNull() },
  (table) => [index().on(table.ownerId)],
);
