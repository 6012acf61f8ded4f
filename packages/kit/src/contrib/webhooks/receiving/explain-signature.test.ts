import { describe, expect, test } from 'vitest';
import { generateKeyPair, generateSecret, signedHeaders, signingKey } from '../signing/signature.ts';
import { explainSignature } from './explain-signature.ts';

const SENT = 1_700_000_000;
const soon = new Date((SENT + 30) * 1000);
const secret = generateSecret();
const pair = generateKeyPair();
const body = '{"type":"order.paid","timestamp":"2023-11-14T22:13:20.000Z","data":{"name":"Zoë <b>"}}';

function linesOf(key: string, change: Readonly<Record<string, string | undefined>> = {}): string {
  const headers = { ...signedHeaders([signingKey(key)], { id: 'msg_1', timestamp: SENT, body }), ...change };
  return Object.entries(headers)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

async function found(given: {
  headers?: string;
  body?: string;
  secret?: string;
  now?: Date;
}): Promise<readonly (readonly [string, string])[]> {
  const { headers = linesOf(secret), now = soon } = given;
  const checks = await explainSignature({ headers, body: given.body ?? body, secret: given.secret ?? secret }, now);
  const told = JSON.stringify(checks);
  for (const hidden of [secret, pair.privateKey]) expect(told, 'no secret is repeated').not.toContain(hidden);
  return checks.map(({ what, result }) => [what, result]);
}

const FINE = [
  ['headers', 'ok'],
  ['timestamp', 'ok'],
  ['secret', 'ok'],
];

describe('why a signature is rejected', () => {
  test('a genuine request: all checks pass, with a secret or a public key', async () => {
    expect(await found({})).toEqual([...FINE, ['signature', 'ok']]);
    expect(await found({ headers: linesOf(pair.privateKey), secret: pair.publicKey })).toEqual([...FINE, ['signature', 'ok']]);
  });

  test.each([
    ['as curl shows them', (line: string) => `< ${line}`],
    ['as arguments of curl', (line: string) => `-H '${line}' \\`],
    ['in capitals', (line: string) => line.replace(/^webhook/, 'Webhook').replace(': ', ':   ')],
    ['as JSON', (line: string) => `  "${line.replace(': ', '": "')}",`],
  ])('headers are read %s', async (_, written) => {
    const headers = linesOf(secret).split('\n').map(written).join('\r\n');
    expect(await found({ headers })).toEqual([...FINE, ['signature', 'ok']]);
  });

  test('missing and malformed headers are named', async () => {
    const [missing] = await explainSignature({ headers: linesOf(secret, { 'webhook-id': undefined }), body, secret }, soon);
    expect(missing).toMatchObject({ what: 'headers', result: 'wrong', text: expect.stringContaining('`webhook-id` is missing') });
    const [none] = await explainSignature({ headers: 'hello', body, secret }, soon);
    expect(none?.text).toContain('`webhook-id`, `webhook-timestamp`, and `webhook-signature` are missing');
    expect(await found({ headers: linesOf(secret, { 'webhook-timestamp': '1.7e9' }) })).toEqual([['timestamp', 'wrong']]);
    expect(await found({ headers: linesOf(secret, { 'webhook-id': 'a.b' }) })).toEqual([['headers', 'wrong']]);
    expect(await found({ headers: linesOf(secret, { 'webhook-signature': 'abc' }) })).toEqual([['headers', 'wrong']]);
  });

  test('an old request is right, and would be rejected now; one from the future is wrong', async () => {
    const at = (seconds: number) => found({ now: new Date((SENT + seconds) * 1000) });
    expect(await at(301)).toEqual([FINE[0], ['timestamp', 'later'], FINE[2], ['signature', 'ok']]);
    expect(await at(-301)).toEqual([FINE[0], ['timestamp', 'wrong'], FINE[2], ['signature', 'ok']]);
    expect(await at(300)).toEqual([...FINE, ['signature', 'ok']]);
  });

  test('a secret of another kind, a cut one and a private key are told apart from a wrong one', async () => {
    for (const wrong of [pair.publicKey, pair.privateKey, secret.slice(0, 20), 'not base64!'])
      expect((await found({ secret: wrong })).at(-1)).toEqual(['secret', 'wrong']);
    expect((await found({ secret: generateSecret() })).at(-1)).toEqual(['signature', 'wrong']);
    expect((await found({ secret: `  ${secret}\n` })).at(-1)).toEqual(['signature', 'ok']);
  });

  test.each([
    ['a line break at its end', `${body}\n`],
    ['whitespace', ` ${body}`],
    ['written again', JSON.stringify(JSON.parse(body), null, 2)],
  ])('a body that was changed on the way: %s', async (words, changed) => {
    const check = (await explainSignature({ headers: linesOf(secret), body: changed, secret }, soon)).at(-1);
    expect(check).toMatchObject({ what: 'signature', result: 'wrong', text: expect.stringContaining(words) });
  });

  test('a body that says something else matches nothing', async () => {
    const check = (await explainSignature({ headers: linesOf(secret), body: body.replace('paid', 'sent'), secret }, soon)).at(-1);
    expect(check).toMatchObject({ what: 'signature', result: 'wrong', text: expect.stringContaining('No signature matches') });
  });
});
