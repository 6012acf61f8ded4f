// Log in, sign up, and the links of mails.
import { askForCode, attempt, facts, find, notify, onSubmit, show } from './dom.js';

const RETURN = 'return_to';
/** Where an invitation waits while its person logs in. A session of the browser, never a URL: servers log those. */
const WAITING = 'kit-tenant-invitation';

/** The page that has sent the person here; only one of this site. */
function target() {
  const wanted = new URLSearchParams(location.search).get(RETURN);
  const url = wanted === null ? null : URL.parse(wanted, location.href);
  if (url !== null && url.origin === location.origin && /^https?:$/.test(url.protocol)) return url.href;
  return sessionStorage.getItem(WAITING) === null ? facts.home : 'link';
}

/** Links between the ways in keep where the person goes afterwards. */
function keepTarget() {
  for (const link of document.querySelectorAll('a[data-keep]')) link.search = location.search;
}

export async function signIn({ login }) {
  keepTarget();
  onSubmit(find('form#sign-in'), async (values, form) => {
    if (await login.signIn(values)) location.assign(target());
    else askForCode(form);
  });
  const person = await login.me();
  if (person === null) return;
  const known = find('[data-signed-in]');
  find('[data-name]', known).textContent = person.name;
  find('[data-continue]', known).href = target();
  show(known);
}

export function signUp({ login }) {
  keepTarget();
  onSubmit(find('form#sign-up'), async (values, form) => {
    if (await login.signUp(values)) return location.assign(target());
    form.reset();
    show(form, false);
    show(find('[data-done]'));
  });
}

export function forgot({ login }) {
  onSubmit(find('form#forgot'), async (values, form) => {
    await login.forgot(values);
    form.reset();
    show(find('[data-done]'));
  });
}

/** What a link is for: the fragment says it, or the query where better-auth has put the token. */
function takeLink() {
  const [, purpose, token] = /^#(reset|invitation|email|tenant-invitation)=([\w-]+)$/.exec(location.hash) ?? [];
  const query = new URLSearchParams(location.search);
  const ofQuery = query.get('token');
  // Not in the history: whoever uses the browser next must not find it there.
  history.replaceState(null, '', location.pathname);
  if (purpose !== undefined) return { purpose, token };
  if (ofQuery !== null) return { purpose: 'reset', token: ofQuery };
  const waiting = query.has('error') ? null : sessionStorage.getItem(WAITING);
  return waiting === null ? { purpose: 'dead', token: '' } : { purpose: 'tenant-invitation', token: waiting };
}

function showPart(purpose) {
  for (const part of document.querySelectorAll('[data-purpose]')) show(part, part.dataset.purpose === purpose);
  const { heading } = find(`[data-purpose="${purpose}"]`).dataset;
  if (heading !== undefined) find('h1').textContent = heading;
}

export async function link({ login, tenants }) {
  const { purpose, token } = takeLink();
  if (purpose === 'tenant-invitation' && facts.tenants === null) return showPart('dead');
  showPart(purpose);
  if (purpose === 'tenant-invitation') return invitation(login, tenants, token);
  const form = find(`form#${purpose}`);
  onSubmit(form, async ({ password }) => {
    await login.useLink(purpose, token, password);
    form.reset();
    find('[data-purpose="done"] [data-text]').textContent = find(`[data-text-${purpose === 'email' ? 'email' : 'password'}]`).textContent;
    showPart('done');
  });
}

async function invitation(login, tenants, token) {
  sessionStorage.setItem(WAITING, token);
  const person = await login.me();
  const joined = () => {
    sessionStorage.removeItem(WAITING);
    location.assign('tenants');
  };
  show(find('[data-known]'), person !== null);
  show(find('[data-unknown]'), person === null);
  if (person !== null) find('[data-known] [data-name]').textContent = person.name;
  onSubmit(find('form#join'), async () => {
    if (await isAccepted(() => tenants.accept(token))) joined();
  });
  onSubmit(find('form#join-new'), async ({ username, password }) => {
    if (!(await isAccepted(() => tenants.accept(token, { username, password })))) return;
    sessionStorage.removeItem(WAITING);
    await login.signIn({ login: username, password });
    joined();
  });
}

/** An invitation that nobody can accept any more does not wait: every later login would lead back to it. */
async function isAccepted(accept) {
  try {
    await accept();
    return true;
  } catch (error) {
    if (![400, 404, 410].includes(error.status)) throw error;
    sessionStorage.removeItem(WAITING);
    showPart('dead');
    return false;
  }
}

/** Buttons that end the session. */
export function wireSignOut(login) {
  for (const button of document.querySelectorAll('[data-sign-out]'))
    button.addEventListener('click', () => {
      void attempt(button.parentElement, async () => {
        await login.me();
        await login.signOut();
        notify('');
        location.assign('sign-in');
      });
    });
}
