import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { App } from 'kit';
import { resetSecondFactor } from 'kit/contrib/accounts';
import { oneTimeCode } from 'kit/testing';
import { dataFolder } from '../config.ts';

/** What a person has in an authenticator app, the demo has in a file. */
const secretFile = join(dataFolder, 'one-time-code-secret');

interface Login {
  readonly username: string;
  readonly password: string;
}

/** Sets up one-time codes for a member of staff, as the admin site does at the first login. */
export async function setUpCodes(app: App, { username, password }: Login): Promise<void> {
  const host = 'localhost';
  const send = async (path: string, payload: object | undefined, headers: Record<string, string> = {}) => {
    const url = `/v1/account/${path}`;
    const response = await app.inject({
      method: 'POST',
      url,
      headers: { host, ...headers },
      ...(payload === undefined ? {} : { payload }),
    });
    const cookie = String(response.headers['set-cookie'] ?? '').split(';')[0] ?? '';
    return { status: response.statusCode, cookie, body: response.json<{ code?: string; csrf_token: string; secret: string }>() };
  };
  let login = await send('login', { login: username, password });
  if (login.body.code === 'one_time_code_required') {
    if (existsSync(secretFile)) return;
    const user = await app.users?.findByLogin(app.db, username);
    if (user) await resetSecondFactor(app.db, user, 'npm start');
    login = await send('login', { login: username, password });
  }
  const { cookie, body } = login;
  const headers = { cookie, 'x-csrf-token': body.csrf_token };
  const { secret } = (await send('factor', undefined, headers)).body;
  // The code before the present one, which is still accepted: a code is good once, and the present one is for the first login.
  const before = new Date(Date.now() - 30_000);
  const confirmed = await send('factor/confirm', { code: oneTimeCode(secret, before) }, headers);
  if (confirmed.status !== 200) throw new Error(`One-time codes could not be set up: ${JSON.stringify(confirmed.body)}`);
  writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
}

/** The code that an authenticator app would show now. */
export function currentCode(): string {
  return oneTimeCode(readFileSync(secretFile, 'utf8').trim());
}
