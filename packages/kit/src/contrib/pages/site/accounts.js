// The login of accounts(), by the routes of AccountController.
import { call, useCsrfToken } from './call.js';
import { facts } from './dom.js';

const { base } = facts.account;
const route = (method, path, body) => call(method, `${base}${path}`, body);

function entered(answer) {
  useCsrfToken(answer.csrf_token);
  const { username, email } = answer.user;
  return { name: username, email, needsFactor: answer.second_factor === 'setup_required' };
}

/** The person at the browser; null for nobody. */
export async function me() {
  try {
    return entered(await route('GET', '/me'));
  } catch (error) {
    if (error.status === 401) return null;
    throw error;
  }
}

/** False: a one-time code is needed. */
export async function signIn({ login, password, code }) {
  try {
    entered(await route('POST', '/login', { login, password, ...(code === undefined ? {} : { code }) }));
    return true;
  } catch (error) {
    if (error.code === 'one_time_code_required') return false;
    throw error;
  }
}

export async function signOut() {
  await route('POST', '/logout');
}

export async function forgot({ login }) {
  await route('POST', '/reset', { login });
}

/** A link of a mail: `reset`, `invitation` or `email`. */
export async function useLink(purpose, token, password) {
  const path = { reset: '/reset/confirm', invitation: '/invitations/accept', email: '/email/confirm' }[purpose];
  await route('POST', path, purpose === 'email' ? { token } : { token, password });
}

/** Proves that the person is there; what was refused for the lack of it can be tried again. */
export async function prove({ password, code }) {
  entered(await route('POST', '/presence', { ...(password === undefined ? {} : { password }), ...(code === undefined ? {} : { code }) }));
}

export async function changePassword({ current, next }) {
  entered(await route('POST', '/password', { current_password: current, new_password: next }));
}

export async function changeEmail({ email }) {
  await route('POST', '/email', { email });
}

export async function sessions() {
  const { items } = await route('GET', '/sessions');
  return items.map(({ id, current, device, address, seen_at }) => ({ id, isCurrent: current, device, address, seenAt: seen_at }));
}

export async function endSession({ id }) {
  await route('DELETE', `/sessions/${id}`);
}

export async function endOthers() {
  await route('POST', '/sessions/end-others');
}

export async function factor() {
  const { enabled, required } = await route('GET', '/factor');
  return { isOn: enabled, isRequired: required };
}

/** The secret to add to an app, to be confirmed by a code. */
export function beginFactor() {
  return route('POST', '/factor');
}

export async function confirmFactor({ code }) {
  const answer = await route('POST', '/factor/confirm', { code });
  entered(answer);
  return answer.recovery_codes;
}

export async function renewCodes() {
  return (await route('POST', '/factor/recovery-codes')).recovery_codes;
}

export async function removeFactor() {
  entered(await route('DELETE', '/factor'));
}
