// What every contender of the crud-* benchmarks serves: the same tables, owners, credentials and rules.
import { model, t, timestamps, versioned } from 'kit/db';

export const customers = model('customers', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), name: t.text(100) });

export const orders = model(
  'orders',
  {
    id: t.uuidv7().pk(),
    owner_id: t.uuid().readOnly(),
    customer_id: t.ref(() => customers).nullable(),
    item: t.text({ min: 1, max: 120 }),
    status: t.enum(['open', 'paid', 'cancelled']).dbDefault('open'),
    quantity: t.int({ min: 1, max: 1000 }),
    total: t.decimal(12, 2),
    note: t.text(500).nullable(),
    ...timestamps(),
    ...versioned(),
  },
  { indexes: [{ columns: ['owner_id', 'status', '-created_at', '-id'] }] },
);

export const orderItems = model(
  'order_items',
  {
    id: t.uuidv7().pk(),
    owner_id: t.uuid().readOnly(),
    order_id: t.ref(() => orders, { onDelete: 'cascade' }),
    sku: t.text(40),
    amount: t.int(),
  },
  { indexes: [{ columns: ['order_id', 'sku'] }] },
);

export const ORDER_COLUMNS = Object.keys(orders.columns);

export interface Caller {
  readonly id: string;
  readonly username: string;
  readonly email: null;
  readonly is_active: true;
  readonly is_staff: false;
  readonly is_superuser: false;
}

/** Owner 7 has this id and the token `owner-7`. */
export function ownerId(index: number): string {
  return `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`;
}

const callers = new Map<string, Caller>();

/** The authentication stub: one header, one lookup, no I/O. */
export function callerOf(authorization: string | undefined): Caller | null {
  if (authorization === undefined || !authorization.startsWith('Bearer owner-')) return null;
  let caller = callers.get(authorization);
  if (caller === undefined) {
    const index = Number(authorization.slice('Bearer owner-'.length));
    if (!Number.isInteger(index) || index < 0 || index >= 10_000) return null;
    caller = { id: ownerId(index), username: `owner-${index}`, email: null, is_active: true, is_staff: false, is_superuser: false };
    callers.set(authorization, caller);
  }
  return caller;
}

export const SCOPES: readonly string[] = ['orders:*'];

export function hasScope(needed: string): boolean {
  const resource = `${needed.split(':', 1)[0]}:*`;
  return SCOPES.some((scope) => scope === '*' || scope === needed || scope === resource);
}

export const STATUSES = ['open', 'paid', 'cancelled'] as const;
