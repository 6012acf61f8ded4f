import { randomBytes } from 'node:crypto';
import type { App } from 'kit';
import { accountsOf, addGroupMember, changePassword, createGroup, createUser, type UserManagement } from 'kit/contrib/accounts';
import { createApiKey, revokeApiKey, rotateApiKey } from 'kit/contrib/apikeys';
import { createEndpoint, rotateSecret } from 'kit/contrib/webhooks';
import type { Db } from 'kit/db';
import { crudOf } from 'kit/crud';
import { orderResource } from '../orders/resource.ts';
import { settings } from '../settings.ts';
import { setUpCodes } from './one-time-codes.ts';
import { BROKEN_PATH, type DemoReceiver } from './start-receiver.ts';

export interface DemoAccess {
  readonly username: string;
  /** New at every start: the database keeps only its hash. */
  readonly password: string;
  /** New at every start: the database keeps only the digest of its secret. */
  readonly key: string;
  readonly endpointId: string;
  /** For the page for customers. */
  readonly customer: { readonly username: string; readonly password: string };
  /** The users an order can be shared with. */
  readonly colleagueId: string;
  readonly groupId: string;
}

type Owner = { readonly id: string };

const USERNAME = 'demo';
const NEIGHBOUR = 'ada';
const KEY_NAME = 'npm start';
const GROUP = 'support desk';
const SCOPES = ['orders:read', 'orders:write', 'orders:share', 'webhooks:read', 'jobs:read', 'jobs:write', 'uploads:read', 'uploads:write'];

/**
 * A staff user with a key and an endpoint, a neighbour whose orders give the admin site something to show, and a group of both. Created once;
 * secrets that must be shown are created again.
 */
export async function seed(app: App, receiver: DemoReceiver): Promise<DemoAccess> {
  const password = randomBytes(12).toString('base64url');
  const management = accountsOf(app.db).management('npm start');
  const access = await app.db.transaction(async (tx) => {
    const user = await staffUser(app, tx, password, management);
    const key = await demoKey(tx, user);
    const endpointId = await endpointAt(tx, user, receiver, { path: '/', description: KEY_NAME });
    return { username: USERNAME, password, key, endpointId };
  });
  const customerPassword = randomBytes(12).toString('base64url');
  const colleagueId = await seedNeighbour(app, receiver, management, customerPassword);
  await setUpCodes(app, { username: USERNAME, password });
  const customer = { username: NEIGHBOUR, password: customerPassword };
  return { ...access, customer, colleagueId, groupId: await supportDesk(app, colleagueId) };
}

async function staffUser(app: App, tx: Db, password: string, management: UserManagement): Promise<Owner> {
  const known = await app.users?.findByLogin(tx, USERNAME);
  if (!known) return createUser(tx, { username: USERNAME, email: 'demo@example.com', password, is_staff: true }, management);
  await changePassword(tx, known, password, management);
  return known;
}

async function demoKey(tx: Db, user: Owner): Promise<string> {
  const [live] = await tx.query<{ id: string }>('select id from api_keys where owner_id = $1 and name = $2 and revoked_at is null', [
    user.id,
    KEY_NAME,
  ]);
  if (live === undefined) return (await createApiKey(tx, { user, name: KEY_NAME, scopes: SCOPES })).raw;
  return (await rotateApiKey(tx, live.id, { scopes: SCOPES })).raw;
}

/** The receiver may listen elsewhere at every start, so its endpoints get the new address and a new secret. */
async function endpointAt(
  tx: Db,
  { id: owner }: Owner,
  receiver: DemoReceiver,
  { path, description }: { readonly path: string; readonly description: string },
): Promise<string> {
  const url = new URL(path, receiver.url).href;
  const [known] = await tx.query<{ id: string }>('select id from webhook_endpoints where owner_id = $1 and description = $2', [
    owner,
    description,
  ]);
  if (known === undefined) {
    const { endpoint, secret } = await createEndpoint(tx, { owner, url, events: ['order.*'], description });
    receiver.trust(path, secret);
    return endpoint.id;
  }
  await tx.query('update webhook_endpoints set url = $2 where id = $1', [known.id, url]);
  receiver.trust(path, (await rotateSecret(tx, known.id))?.secret ?? '');
  return known.id;
}

/** Another customer: keys in several states, an endpoint that works, one that fails, and a dozen orders that were announced to both. */
async function seedNeighbour(app: App, receiver: DemoReceiver, management: UserManagement, password: string): Promise<string> {
  const known = await app.users?.findByLogin(app.db, NEIGHBOUR);
  const user = known ?? (await createUser(app.db, { username: NEIGHBOUR, email: 'ada@example.com' }, management));
  await changePassword(app.db, { ...user, email: null }, password, management);
  await app.db.transaction(async (tx) => {
    await endpointAt(tx, user, receiver, { path: '/shop', description: 'Shop front' });
    await endpointAt(tx, user, receiver, { path: BROKEN_PATH, description: 'Warehouse, currently down' });
  });
  if (known) return known.id;
  const inDays = (days: number): Date => new Date(app.clock.now().getTime() + days * 86_400_000);
  const shop = await app.db.transaction((tx) =>
    createApiKey(tx, { user, name: 'Shop front', scopes: ['orders:*', 'uploads:*'], rateLimit: '100/min', quota: '10000/month' }),
  );
  await app.db.transaction(async (tx) => {
    await createApiKey(tx, { user, name: 'Monthly report', scopes: ['orders:read'], expiresAt: inDays(5) });
    const old = await createApiKey(tx, { user, name: 'Old integration', scopes: ['orders:write'] });
    await revokeApiKey(tx, old.apiKey.id, { reason: 'replaced by Shop front' });
  });
  const { quantity_max } = (await app.services.get(settings)).current;
  const own = crudOf(app, orderResource).as({ user });
  for (const [index, item] of ITEMS.entries()) {
    // The resource's hook adds price and currency.
    const { id } = await own.write().create({ item, quantity: Math.min(1 + (index % 4), quantity_max) } as never);
    if (index % 3 !== 2) await own.write().transition(id, index % 3 === 0 ? 'pay' : 'cancel');
    if (index === 0) await own.write().update(id, { invoice_id: await sendInvoice(app, shop.raw) });
  }
  await useKey(app, shop.raw);
  return user.id;
}

/** Requests of the key that works, some of them mistakes: the portal and the admin site have something to show. */
async function useKey(app: App, key: string): Promise<void> {
  const urls = [
    '/v1/orders',
    '/v1/orders?limit=5',
    '/v1/orders/00000000-0000-7000-8000-000000000000',
    '/v1/orders?limit=none',
    '/v1/webhooks',
  ];
  for (const url of urls) await app.inject({ method: 'GET', url, headers: { 'x-api-key': key } });
}

async function supportDesk(app: App, memberId: string): Promise<string> {
  const known = await app.registry.groups?.findByName(app.db, GROUP, null);
  if (known) return known.id;
  const { id } = await createGroup(app.db, { name: GROUP, tenantKey: null }, { by: 'npm start' });
  await addGroupMember(app.db, id, memberId, { by: 'npm start' });
  return id;
}

/** As a client does it: announced, sent to the signed address, completed. Returns the id of the upload. */
async function sendInvoice(app: App, key: string): Promise<string> {
  const headers = { 'x-api-key': key };
  const payload = { filename: 'Invoice 1.png', content_type: 'image/png', size: INVOICE.length };
  const announced = await app.inject({ method: 'POST', url: '/v1/invoices', headers, payload });
  const { id, url, headers: signed } = announced.json<{ id: string; url: string; headers: Record<string, string> }>();
  await app.inject({ method: 'PUT', url, headers: signed, payload: INVOICE });
  await app.inject({ method: 'POST', url: `/v1/invoices/${id}/complete`, headers });
  return id;
}

/** A small picture of a receipt. */
const INVOICE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAADAAAABACAAAAAB5S6uaAAAARklEQVR42mOoIBEwVPwnCYxqIE2DBlZATQ2j8TA4NPRgAFRxyjWMhtJoKI2G0mgojYbSaCgNhtbMfwxRyjWMtjWoq4FEAAAQ5acnuzvO3AAAAABJRU5ErkJggg==',
  'base64',
);

const ITEMS = [
  'Espresso beans',
  'Filter paper',
  'Hand grinder',
  'Milk jug',
  'Scale',
  'Kettle',
  'Dripper',
  'Descaler',
  'Cup, 200 ml',
  'Cup, 80 ml',
  'Cleaning brush',
  'Decaf beans',
];
