// The login of betterAuth(), by the routes of the instance.
import { call } from './call.js';
import { facts } from './dom.js';

const { base } = facts.account;
const post = (path, body = {}) => call('POST', `${base}${path}`, body);
const get = (path) => call('GET', `${base}${path}`);
/** Where mails lead back to: better-auth wants whole addresses. */
const pageAt = (path) => new URL(path, document.baseURI).href;

let current = null;

/** The person at the browser; null for nobody. */
export async function me() {
  current = await get('/get-session');
  if (current === null) return null;
  const { name, email } = current.user;
  return { name: name || email, email, needsFactor: false };
}

let isHalfway = false;

/** False: a one-time code is needed. The password is not sent again: better-auth remembers who is halfway. */
export async function signIn({ login, password, code }) {
  if (isHalfway && code !== undefined) {
    const isTotp = /^\d{6}$/.test(code.trim());
    await post(isTotp ? '/two-factor/verify-totp' : '/two-factor/verify-backup-code', { code: code.trim() });
    return true;
  }
  const { twoFactorRedirect = false } = await post('/sign-in/email', { email: login, password });
  isHalfway = twoFactorRedirect;
  return !isHalfway;
}

/** False: the address must be verified first. */
export async function signUp({ name, email, password }) {
  const { token } = await post('/sign-up/email', { name, email, password, callbackURL: pageAt('sign-in') });
  return token !== null && token !== undefined;
}

export async function signOut() {
  await post('/sign-out');
}

export async function forgot({ login }) {
  await post('/request-password-reset', { email: login, redirectTo: pageAt('link') });
}

export async function useLink(purpose, token, password) {
  await post('/reset-password', { token, newPassword: password });
}

export async function changePassword({ current: currentPassword, next }) {
  await post('/change-password', { currentPassword, newPassword: next, revokeOtherSessions: true });
}

export async function sessions() {
  const list = await get('/list-sessions');
  return list.map(({ id, token, userAgent, ipAddress, updatedAt }) => ({
    id,
    token,
    isCurrent: id === current?.session.id,
    device: userAgent,
    address: ipAddress,
    seenAt: updatedAt,
  }));
}

export async function endSession({ token }) {
  await post('/revoke-session', { token });
}

export async function endOthers() {
  await post('/revoke-other-sessions');
}

export async function factor() {
  await me();
  return { isOn: current?.user.twoFactorEnabled === true, isRequired: false };
}

let backupCodes = [];

export async function beginFactor({ password }) {
  const { totpURI, backupCodes: codes } = await post('/two-factor/enable', { password });
  backupCodes = codes;
  return { uri: totpURI, secret: new URL(totpURI).searchParams.get('secret') };
}

export async function confirmFactor({ code }) {
  await post('/two-factor/verify-totp', { code });
  return backupCodes;
}

export async function renewCodes({ password }) {
  return (await post('/two-factor/generate-backup-codes', { password })).backupCodes;
}

export async function removeFactor({ password }) {
  await post('/two-factor/disable', { password });
}
