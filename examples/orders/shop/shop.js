// Calls the API with the client that `kit client typescript` generates. Texts of the API are set as text, never as markup.
import { createClient, isProblem } from './api.js';

const client = createClient({ session: true });
const PAGE_SIZE = 10;
const FIELDS = ['id', 'item', 'quantity', 'total', 'currency', 'status', 'version', 'invoice'];

const byId = (id) => document.getElementById(id);
const say = (text) => (byId('notice').textContent = text);

/** Problems are shown in the words of the API; a session that has ended shows the login. */
function explain(error) {
  if (!isProblem(error)) return say('The server cannot be reached. Try again later.');
  if (error.status === 401) show(null);
  const faults = error.errors.map(({ location, message }) => `${location.at(-1)}: ${message}`);
  return say(faults.length > 0 ? faults.join(' ') : error.detail);
}

function show(user) {
  byId('login').hidden = user !== null;
  byId('shop').hidden = user === null;
  byId('account').hidden = user === null;
  byId('username').textContent = user?.username ?? '';
}

/** Runs what a form is for; its button waits meanwhile. */
function onSubmit(id, action) {
  const form = byId(id);
  const submit = async () => {
    const button = form.querySelector('button');
    button.disabled = true;
    say('');
    try {
      await action(Object.fromEntries(new FormData(form)), form);
    } catch (error) {
      explain(error);
    } finally {
      button.disabled = false;
    }
  };
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit();
  });
}

let cursor;

async function list(isMore = false) {
  const given = Object.fromEntries(new FormData(byId('filters')));
  const filters = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''));
  const { items, next } = await client.orders.list({
    ...filters,
    limit: PAGE_SIZE,
    fields: FIELDS,
    expand: ['invoice'],
    ...(isMore ? { cursor } : {}),
  });
  const rows = items.map(row);
  if (isMore) byId('orders').append(...rows);
  else byId('orders').replaceChildren(...rows);
  cursor = next ? (new URLSearchParams(next.slice(next.indexOf('?') + 1)).get('cursor') ?? undefined) : undefined;
  byId('more').hidden = cursor === undefined;
}

function row(order) {
  const node = document.createElement('tr');
  for (const text of [order.item, order.quantity, `${order.total} ${order.currency}`, order.status]) node.insertCell().textContent = text;
  node.insertCell().append(order.invoice ? order.invoice.filename : invoiceInput(order));
  return node;
}

/** A file is sent to the presigned URL with progress, then attached; an order that was changed meanwhile is not overwritten. */
function invoiceInput(order) {
  const input = Object.assign(document.createElement('input'), { type: 'file', accept: 'application/pdf,image/*' });
  input.setAttribute('aria-label', `Invoice of ${order.item}`);
  const attach = async () => {
    const [file] = input.files;
    if (file === undefined) return;
    const progress = Object.assign(document.createElement('progress'), { max: file.size, value: 0 });
    progress.setAttribute('aria-label', `Upload of ${file.name}`);
    input.replaceWith(progress);
    try {
      const invoice = await client.invoices.upload({ file }, { onProgress: ({ sent }) => (progress.value = sent) });
      await client.orders.partialUpdate({ id: order.id, body: { invoice_id: invoice.id } }, { ifMatch: `"${order.version}"` });
      say(`${file.name} was attached to ${order.item}.`);
      await list();
    } catch (error) {
      progress.replaceWith(invoiceInput(order));
      explain(error);
    }
  };
  input.addEventListener('change', () => void attach());
  return input;
}

onSubmit('login', async (given, form) => {
  const { user } = await client.account.login({ body: given });
  form.reset();
  show(user);
  await list();
});
onSubmit('place', async ({ item, quantity }, form) => {
  const order = await client.orders.create({ body: { item, quantity: Number(quantity) } });
  form.reset();
  say(`${order.item} was ordered for ${order.total} ${order.currency}.`);
  await list();
});
onSubmit('filters', () => list());
byId('more').addEventListener('click', () => void list(true).catch(explain));
async function logOut() {
  await client.account.logout().catch(explain);
  show(null);
}
byId('logout').addEventListener('click', () => void logOut());

// A session from before, and its CSRF token.
try {
  const { user } = await client.account.me();
  show(user);
  await list();
} catch (error) {
  show(null);
  if (!isProblem(error) || error.status !== 401) explain(error);
}
