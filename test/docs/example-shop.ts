// What the examples in the comments of the toolkit leave out: the application that they are about.
import { type App, defineErrors, domainEvent, isAuthenticated, type Middleware, type Module, type Page, type User } from 'kit';
import { objectActions } from 'kit/contrib/grants';
import { job } from 'kit/contrib/jobs';
import { CrudController, resource } from 'kit/crud';
import { type Database, type Db, type Insert, migration, model, type Row, t, timestamps } from 'kit/db';
import { z } from 'zod';

export const users = model('users', { id: t.uuidv7().pk(), username: t.text(80) });
export const customers = model('customers', { id: t.uuidv7().pk(), name: t.text(80) });
export const orders = model('orders', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  customer_id: t.ref(() => customers).nullable(),
  item: t.text(80),
  quantity: t.int(),
  status: t.enum(['open', 'paid']).dbDefault('open'),
  discount: t.int().nullable(),
  margin: t.decimal(12, 2).nullable(),
  note: t.text(200).nullable(),
  ...timestamps(),
});
export const orderItems = model('order_items', { id: t.uuidv7().pk(), order_id: t.ref(() => orders), sku: t.text(40) });
export const notes = model('notes', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  title: t.text(200),
  pinned: t.bool().dbDefault(false),
});
export const tickets = model('tickets', {
  id: t.uuidv7().pk(),
  owner_id: t.uuid().readOnly(),
  due_at: t.timestamp(),
  closed_at: t.timestamp().nullable(),
});
export const OrderInput = orders.input;
export const OrderOut = orders.output;

export const orderResource = resource(orders, { owner: 'owner_id' });
export class OrderController extends CrudController(orderResource, { permission: isAuthenticated }) {}
export const orderActions = objectActions(orders, { actions: ['view', 'change'], sets: { editor: ['view', 'change'] } });
export const mount = { '/v1': { '/orders': OrderController } };
export const shop: Module = { name: 'shop', models: [customers, orders, orderItems, notes] };

export const OrderPaid = domainEvent('order.paid', z.object({ id: z.uuid() }));
export const sendInvoice = job('invoice.send', { input: z.object({ orderId: z.uuid() }), run: async () => undefined });
export const paymentErrors = defineErrors('payments', { card_declined: { status: 402, detail: 'The card was declined.' } });
export class StripeCardError extends Error {}

export interface Mailer {
  send(): Promise<void>;
}
export declare const SmtpMailer: new () => Mailer;

export declare const app: App;
export declare const db: Database;
export declare const tx: Db;
export declare const user: User;
export declare const id: string;
export declare const order: Insert<typeof orders> & { readonly id: string };
export declare const values: Insert<typeof orders>;
export declare const secret: string;
export declare const request: Request;
export declare const rawBody: Buffer;
export declare function ordersOf(db: Db, user: User | null): Promise<Page<Row<typeof orders>>>;
export declare function mailInvoice(db: Db, orderId: string): Promise<void>;
export declare function notify(id: string): Promise<void>;
export declare function renderPdf(): Buffer;
export declare function savePhoto(bytes: Uint8Array, title?: string): Promise<void>;

export interface ParcelOptions {
  readonly carrier?: string;
}
export const initial = migration('0001_parcels', []);
export const parcelErrors = defineErrors('parcels', { lost: { status: 410, detail: 'The parcel was lost.' } });
export declare function tracking(options: ParcelOptions): Middleware;
/** Of a broker that the toolkit does not know. */
export declare const producer: {
  send(record: { topic: string; messages: { key: string; headers: Record<string, string>; value: Buffer }[] }): Promise<void>;
};
export declare function onRoute(): void;
export declare function setup(): Promise<void>;
