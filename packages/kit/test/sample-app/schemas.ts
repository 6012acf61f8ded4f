import * as z from 'zod';

export const Line = z
  .strictObject({ sku: z.string().regex(/^[A-Z]{2}-\d{1,6}$/), quantity: z.int().min(1).max(999) })
  .meta({ id: 'Line', examples: [{ sku: 'AB-1', quantity: 2 }] });

const Contact = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('email'), address: z.email().max(120) }),
  z.strictObject({ kind: z.literal('phone'), number: z.string().regex(/^\+[1-9]\d{6,14}$/) }),
]);

export const OrderInput = z
  .strictObject({
    title: z.string().min(1).max(80),
    total: z.string().regex(/^\d{1,10}\.\d{2}$/),
    priority: z.int().min(1).max(5).default(3),
    weight: z.number().positive().max(1_000_000),
    due_at: z.iso.datetime().nullable().optional(),
    tags: z.array(z.string().min(1).max(20)).max(5).default([]),
    lines: z.array(Line).min(1).max(20),
    contact: Contact,
    extra: z.record(z.string().min(1).max(20), z.number()).optional(),
    pin: z.string().max(12).optional().meta({ 'x-sensitive': true }),
  })
  .meta({ id: 'OrderInput' });

export const OrderPatch = z.strictObject({ title: z.string().min(1).max(80).optional(), priority: z.int().min(1).max(5).optional() });

export const Order = z
  .strictObject({
    id: z.uuid(),
    owner_id: z.string(),
    title: z.string(),
    total: z.string(),
    priority: z.int(),
    document: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Order' });

export const OrderKey = z.strictObject({ id: z.uuid() });

export const ListQuery = z.strictObject({
  page: z.int().min(1).max(10_000).default(1),
  page_size: z.int().min(1).max(100).default(50),
  search: z.string().max(60).optional(),
  urgent: z.boolean().optional(),
  tag: z.array(z.string().max(20)).max(5).optional(),
  order: z.enum(['title', 'priority']).default('title'),
  max_weight: z.number().optional(),
});

export const SearchBody = z.strictObject({ text: z.string().max(60), limit: z.int().min(1).max(50).default(10) });

export const Bulk = z.strictObject({ orders: z.array(OrderInput).min(1).max(5) });

export interface Tree {
  readonly name: string;
  readonly children?: Tree[] | undefined;
}
export const Tree: z.ZodType<Tree> = z.strictObject({
  name: z.string().max(20),
  get children() {
    return z.array(Tree).max(3).optional();
  },
});
