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

/** What the form says. */
function filters() {
  return Object.fromEntries([...new FormData(byId('filters'))].filter(([, value]) => value !== ''));
}

/** One after the other: a page that is read again must not take away the one after it. */
let reading = Promise.resolve();

/** `first`: the first page; `more`: the next one; `again`: as many rows as are shown. */
function list(which = 'first') {
  const read = reading.then(() => readPage(which));
  reading = read.catch(() => undefined);
  return read;
}

async function readPage(which) {
  const isMore = which === 'more';
  const { items, next } = await client.orders.list({
    ...filters(),
    limit: which === 'again' ? Math.min(100, Math.max(PAGE_SIZE, byId('orders').rows.length)) : PAGE_SIZE,
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

let following = new AbortController();

/** Shows orders as they change: in another window, by a colleague, by a program. Those that changed are marked. */
async function follow() {
  following.abort();
  following = new AbortController();
  const { signal } = following;
  await list();
  void showChanges(signal).catch((error) => signal.aborted || explain(error));
}

async function showChanges(signal) {
  let isShown = false;
  changed.clear();
  // A list tells of changes of the fields that it shows: any change is one of `updated_at`.
  for await (const { event, key } of client.orders.live({ ...filters(), fields: ['id', 'updated_at'] }, { signal })) {
    if (isShown && event === 'upsert') changed.add(key);
    if (event !== 'ready') continue;
    // Also the first time: an order may have changed since the page was read. What is being uploaded has its progress in the table, which is read again after it.
    if (document.querySelector('progress') === null) await list('again');
    isShown = true;
    changed.clear();
  }
}

/** Keys of the orders that are marked. */
const changed = new Set();

function row(order) {
  const node = document.createElement('tr');
  node.classList.toggle('changed', changed.has(order.id));
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
  await follow();
});
onSubmit('place', async ({ item, quantity }, form) => {
  const order = await client.orders.create({ body: { item, quantity: Number(quantity) } });
  form.reset();
  say(`${order.item} was ordered for ${order.total} ${order.currency}.`);
  await list();
});
onSubmit('filters', () => follow());
byId('more').addEventListener('click', () => void list('more').catch(explain));
async function logOut() {
  following.abort();
  await client.account.logout().catch(explain);
  show(null);
}
byId('logout').addEventListener('click', () => void logOut());

// A session from before, and its CSRF token.
try {
  const { user } = await client.account.me();
  show(user);
  await follow();
} catch (error) {
  show(null);
  if (!isProblem(error) || error.status !== 401) explain(error);
}
