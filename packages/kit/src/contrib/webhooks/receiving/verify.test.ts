import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { parseSync } from 'oxc-parser';
import { describe, expect, test } from 'vitest';
import type { RawBody, ReceivedHeaders, VerifiedMessage, VerifyOptions } from './received-message.ts';
import { generateKeyPair, generateSecret, signedHeaders, signingKey } from '../signing/signature.ts';
import * as onNode from './verify.ts';
import * as onWeb from './verify-web.ts';

type Verify = (secrets: string | string[], headers: ReceivedHeaders, body: RawBody, options?: VerifyOptions) => Promise<VerifiedMessage>;

// One table, two implementations: whatever holds on Node holds on edge runtimes.
const builds: [string, Verify][] = [
  ['kit/webhooks/verify', async (...args) => onNode.verifySignature(...args)],
  ['kit/webhooks/verify-web', onWeb.verifySignature],
];

const NOW = 1_700_000_000;
const at = { now: new Date(NOW * 1000) };
const secret = generateSecret();
const other = generateSecret();
const pair = generateKeyPair();
const otherPair = generateKeyPair();
const body = '{"type":"a.b","timestamp":"2023-11-14T22:13:20.000Z","data":{"name":"Zoë"}}';
const signed = (keys: string[], changes: { id?: string; timestamp?: number; body?: string | Uint8Array } = {}): Record<string, string> =>
  signedHeaders(
    keys.map((key) => signingKey(key)),
    { id: 'msg_1', timestamp: NOW, body, ...changes },
  );
const headers = signed([secret]);

describe.each(builds)('%s', (_name, verify) => {
  const reasonOf = async (...args: Parameters<Verify>): Promise<unknown> =>
    verify(...args).then(
      () => 'accepted',
      (error: { name: string; code: string; reason?: string }) => error.reason ?? error.name,
    );

  test('a genuine message is accepted and its id and time are returned', async () => {
    await expect(verify(secret, headers, body, at)).resolves.toEqual({ id: 'msg_1', timestamp: at.now });
  });

  test('headers may be a plain object in any case, Node headers with arrays, or fetch Headers', async () => {
    const upper = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.replace('webhook', 'Webhook').toUpperCase(), value]),
    );
    await verify(secret, upper, body, at);
    await verify(secret, new Headers(headers), body, at);
    await verify(secret, Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])), body, at);
    await verify(secret, Object.assign(Object.create(null), headers), body, at);
  });

  test('the body may be a string, a Buffer, a Uint8Array or an ArrayBuffer', async () => {
    const bytes = new TextEncoder().encode(body);
    const padded = Buffer.concat([Buffer.from('xx'), bytes, Buffer.from('yy')]);
    for (const form of [body, Buffer.from(body), bytes, bytes.buffer, padded.subarray(2, 2 + bytes.length)])
      await verify(secret, headers, form, at);
  });

  test('bytes are verified as bytes, not as decoded text', async () => {
    const bytes = Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x7d]);
    const own = signed([secret], { body: bytes });
    await verify(secret, own, bytes, at);
    expect(await reasonOf(secret, own, bytes.toString('utf8'), at)).toBe('no_matching_signature');
  });

  test('an empty body is verified like any other', async () => {
    const own = signed([secret], { body: '' });
    await verify(secret, own, '', at);
    await verify(secret, own, new Uint8Array(0), at);
  });

  test('any secret of a list may match, in any position', async () => {
    await verify([other, secret], headers, body, at);
    await verify([secret, other], headers, body, at);
    await verify([pair.publicKey, other, secret], headers, body, at);
    expect(await reasonOf([other, generateSecret()], headers, body, at)).toBe('no_matching_signature');
  });

  test('a secret without its prefix is accepted, as other libraries print it so', async () => {
    await verify(secret.slice('whsec_'.length), headers, body, at);
  });

  test('any signature of several may match, unknown versions are skipped', async () => {
    const good = headers['webhook-signature'] ?? '';
    const bad = signed([other])['webhook-signature'] ?? '';
    for (const value of [`${bad} ${good}`, `${good} ${bad}`, `v2,zzz ${good} v9`, `${bad} v1a,AAAA ${good}`, ` ${good}`]) {
      await verify(secret, { ...headers, 'webhook-signature': value }, body, at);
    }
  });

  test('an ed25519 signature is accepted with its public key only', async () => {
    const own = signed([pair.privateKey]);
    await verify(pair.publicKey, own, body, at);
    await verify([otherPair.publicKey, pair.publicKey], own, body, at);
    await verify([secret, pair.publicKey], own, body, at);
    expect(await reasonOf(otherPair.publicKey, own, body, at)).toBe('no_matching_signature');
    expect(await reasonOf(secret, own, body, at)).toBe('no_matching_signature');
    expect(await reasonOf(pair.publicKey, headers, body, at)).toBe('no_matching_signature');
  });

  test('a v1 and a v1a signature side by side are each accepted by their own key', async () => {
    const both = signed([secret, pair.privateKey]);
    await verify(secret, both, body, at);
    await verify(pair.publicKey, both, body, at);
  });

  test('the public key used as an HMAC secret does not verify', async () => {
    const forged = signed([`whsec_${pair.publicKey.slice(5)}`]);
    expect(await reasonOf(pair.publicKey, forged, body, at)).toBe('no_matching_signature');
    const relabelled = { ...forged, 'webhook-signature': (forged['webhook-signature'] ?? '').replace('v1,', 'v1a,') };
    expect(await reasonOf(pair.publicKey, relabelled, body, at)).toBe('no_matching_signature');
  });

  const without = (name: string): Record<string, string> => Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
  const signature = headers['webhook-signature'] ?? '';
  const refusals: [string, ReceivedHeaders, string][] = [
    ['no headers', {}, 'missing_header'],
    ['no id', without('webhook-id'), 'missing_header'],
    ['no timestamp', without('webhook-timestamp'), 'missing_header'],
    ['no signature', without('webhook-signature'), 'missing_header'],
    ['empty id', { ...headers, 'webhook-id': '' }, 'missing_header'],
    ['id twice', { ...headers, 'webhook-id': ['msg_1', 'msg_1'] }, 'missing_header'],
    ['signature twice', { ...headers, 'webhook-signature': [signature, signature] }, 'missing_header'],
    ['signature twice, as Node and fetch join it', { ...headers, 'webhook-signature': `${signature}, ${signature}` }, 'missing_header'],
    ['timestamp twice', { ...headers, 'webhook-timestamp': [String(NOW), String(NOW)] }, 'missing_header'],
    ['empty Headers', new Headers(), 'missing_header'],
    ['a header inherited from a prototype', Object.create(headers) as Record<string, string>, 'missing_header'],
    ['another id', { ...headers, 'webhook-id': 'msg_2' }, 'no_matching_signature'],
    ['an id with a dot', { ...headers, 'webhook-id': `msg_1.${NOW}` }, 'malformed_id'],
    ['another timestamp', { ...headers, 'webhook-timestamp': String(NOW + 1) }, 'no_matching_signature'],
    ['signature of one byte less', { ...headers, 'webhook-signature': signature.slice(0, -2) }, 'no_matching_signature'],
    ['signature without padding', { ...headers, 'webhook-signature': signature.slice(0, -1) }, 'no_matching_signature'],
    ['signature with a trailing comma', { ...headers, 'webhook-signature': `${signature},` }, 'no_matching_signature'],
    ['signature without a version', { ...headers, 'webhook-signature': signature.slice(3) }, 'malformed_signature'],
    ['upper-case version', { ...headers, 'webhook-signature': signature.replace('v1', 'V1') }, 'malformed_signature'],
    ['only unknown versions', { ...headers, 'webhook-signature': signature.replace('v1', 'v2') }, 'malformed_signature'],
    ['empty v1', { ...headers, 'webhook-signature': 'v1,' }, 'no_matching_signature'],
    ['empty v1a', { ...headers, 'webhook-signature': 'v1a,' }, 'no_matching_signature'],
    ['not base64', { ...headers, 'webhook-signature': `v1,${'%'.repeat(44)}` }, 'no_matching_signature'],
    ['non-ASCII signature of the same length', { ...headers, 'webhook-signature': `v1,${'é'.repeat(44)}` }, 'no_matching_signature'],
    [
      'a flood of signatures',
      { ...headers, 'webhook-signature': Array.from({ length: 51 }, () => signature).join(' ') },
      'malformed_signature',
    ],
  ];
  test.each(refusals)('refused: %s', async (_label, given, reason) => {
    expect(await reasonOf(secret, given, body, at)).toBe(reason);
  });

  test.each([
    '',
    ' ',
    'abc',
    '1e9',
    '1700000000.0',
    '1700000000abc',
    ' 1700000000',
    '+1700000000',
    '-1',
    '0x10',
    '01700000000',
    '9'.repeat(13),
    'NaN',
  ])('the timestamp %j is not an integer', async (timestamp) => {
    const reason = timestamp === '' ? 'missing_header' : 'malformed_timestamp';
    expect(await reasonOf(secret, { ...headers, 'webhook-timestamp': timestamp }, body, at)).toBe(reason);
  });

  test('the tolerance is 300 seconds in both directions, inclusive', async () => {
    for (const [age, expected] of [
      [0, 'accepted'],
      [300, 'accepted'],
      [301, 'timestamp_too_old'],
      [-300, 'accepted'],
      [-301, 'timestamp_too_new'],
      [1_600_000_000, 'timestamp_too_old'],
    ] as const) {
      expect(await reasonOf(secret, signed([secret], { timestamp: NOW - age }), body, at)).toBe(expected);
    }
  });

  test('the tolerance can be set, zero included', async () => {
    expect(await reasonOf(secret, signed([secret], { timestamp: NOW - 10 }), body, { ...at, tolerance: 9 })).toBe('timestamp_too_old');
    expect(await reasonOf(secret, signed([secret], { timestamp: NOW - 1 }), body, { ...at, tolerance: 0 })).toBe('timestamp_too_old');
    expect(await reasonOf(secret, headers, body, { ...at, tolerance: 0 })).toBe('accepted');
  });

  test('the time defaults to the time of the machine, and a number counts as milliseconds', async () => {
    expect(await reasonOf(secret, headers, body)).toBe('timestamp_too_old');
    expect(await reasonOf(secret, headers, body, { now: NOW * 1000 })).toBe('accepted');
    const fresh = signed([secret], { timestamp: Math.floor(Date.now() / 1000) });
    expect(await reasonOf(secret, fresh, body)).toBe('accepted');
  });

  test('an unusable option is an error of the caller, not of the message', async () => {
    for (const options of [
      { tolerance: -1 },
      { tolerance: Number.NaN },
      { tolerance: Number.POSITIVE_INFINITY },
      { now: Number.NaN },
      { now: new Date('x') },
    ]) {
      expect(await reasonOf(secret, headers, body, { ...at, ...options })).toBe('TypeError');
    }
  });

  test('invalid headers are an error of the caller, which names them', async () => {
    for (const none of [undefined, null, 'webhook-id: a', 7])
      expect(await reasonOf(secret, none as unknown as typeof headers, body, at)).toBe('TypeError');
    expect(() => onNode.verifySignature(secret, undefined as never, body)).toThrow('Pass the headers of the request');
  });

  test.each([[''], ['whsec_'], ['whsec_c2hvcnQ='], ['c2hvcnQ='], ['whpk_c2hvcnQ='], ['nonsense!'], [pair.privateKey]])(
    'the unusable secret %# is an error, even beside a good one',
    async (bad) => {
      expect(await reasonOf(bad, headers, body, at)).toBe('InvalidSecret');
      expect(await reasonOf([secret, bad], headers, body, at)).toBe('InvalidSecret');
    },
  );

  test('no secret at all is an error', async () => {
    expect(await reasonOf([], headers, body, at)).toBe('InvalidSecret');
    expect(await reasonOf(undefined as unknown as string, headers, body, at)).toBe('InvalidSecret');
  });

  test('a parsed body is refused with the way out', async () => {
    await expect(verify(secret, headers, JSON.parse(body) as string, at)).rejects.toThrow(/raw request body/);
  });

  test('any flipped bit in the body is noticed', async () => {
    const bytes = Buffer.from(body);
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.nat(7), async (index, bit) => {
        const changed = Buffer.from(bytes);
        changed.writeUInt8(changed.readUInt8(index) ^ (1 << bit), index);
        expect(await reasonOf(secret, headers, changed, at)).toBe('no_matching_signature');
      }),
    );
  });

  test('whatever is signed verifies, and only with its own secret', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 24, maxLength: 64 }),
        fc.uint8Array(),
        fc.stringMatching(/^[\w-]{1,40}$/),
        async (key, bytes, id) => {
          const own = generateSecret(key);
          const message = signed([own], { id, body: bytes });
          await verify(own, message, bytes, at);
          expect(await reasonOf(secret, message, bytes, at)).toBe('no_matching_signature');
        },
      ),
    );
  });
});

/** Every module a file imports, relative ones followed. */
function importsOf(file: string, seen = new Set<string>()): Set<string> {
  const { module } = parseSync(file, readFileSync(file, 'utf8'));
  const specifiers = [
    ...module.staticImports.map((statement) => statement.moduleRequest.value),
    ...module.staticExports.flatMap((statement) =>
      statement.entries.flatMap((entry) => (entry.moduleRequest === null ? [] : [entry.moduleRequest.value])),
    ),
    ...module.dynamicImports.map(() => 'a dynamic import'),
  ];
  for (const specifier of specifiers) {
    if (seen.has(specifier)) continue;
    seen.add(specifier);
    if (specifier.startsWith('.')) importsOf(join(dirname(file), specifier), seen);
  }
  return seen;
}

test('the Node build imports nothing but node:crypto, the web build nothing at all', () => {
  const own = new Set(['./received-message.ts', '../signing/secret.ts', '../../../db/values/bounded-map.ts']);
  const foreign = (file: string): string[] => [...importsOf(join(import.meta.dirname, file))].filter((specifier) => !own.has(specifier));
  expect(foreign('verify.ts')).toEqual(['node:crypto']);
  expect(foreign('verify-web.ts')).toEqual([]);
});

test('the web build names no Node global', () => {
  for (const file of ['verify-web.ts', 'received-message.ts', '../signing/secret.ts']) {
    const code = readFileSync(join(import.meta.dirname, file), 'utf8').replaceAll(/\/\/.*|\/\*[^]*?\*\/|'[^'\n]*'/g, '');
    expect(code).not.toMatch(/\b(?:Buffer|process|require|__dirname)\b/);
  }
});

test('both entry points are exported by the package and reach the same classes', async () => {
  const node = await import('kit/webhooks/verify');
  const web = await import('kit/webhooks/verify-web');
  expect(Object.keys(node).sort()).toEqual(['InvalidSecret', 'InvalidSignature', 'verifySignature']);
  expect(Object.keys(web).sort()).toEqual(['InvalidSecret', 'InvalidSignature', 'verifySignature']);
  expect(node.InvalidSignature).toBe(web.InvalidSignature);
});

test.each([
  ['on Node', onNode.verifySignature],
  ['on the web', onWeb.verifySignature],
])('%s the verified message has the parsed event, and null where the body is not an event', async (_name, verify) => {
  const secret = generateSecret();
  const now = Date.now();
  const eventOf = async (body: string | Uint8Array) => {
    const headers = signedHeaders([signingKey(secret)], { id: 'msg_1', timestamp: Math.floor(now / 1000), body });
    return (await verify(secret, headers, body, { now })).event;
  };
  const event = { type: 'order.paid', timestamp: '2026-01-01T00:00:00.000Z', data: { n: 1 } };
  expect(await eventOf(JSON.stringify(event))).toEqual(event);
  expect(await eventOf(new TextEncoder().encode(JSON.stringify(event)))).toEqual(event);
  for (const body of ['', 'text', 'null', '[]', '{"type":"a"}', '{"type":"a","timestamp":"b","data":null}'])
    expect(await eventOf(body)).toBeNull();
});

test.each([
  ['on Node', onNode.verifySignature],
  ['on the web', onWeb.verifySignature],
])(
  '%s a number of the event that would become another one is an error, and the message is verified all the same',
  async (_name, verify) => {
    const now = at.now;
    const receive = (data: string) => {
      const text = `{"type":"order.paid","timestamp":"2026-01-01T00:00:00.000Z","data":${data}}`;
      return verify(secret, signed([secret], { body: text }), text, { now });
    };
    for (const literal of ['9007199254740993', '-9007199254740993', '9.007199254740993e15', '123456789012345678901234567890'])
      for (const data of [`{"id":${literal}}`, `{"a\\"1":[{"b":"\\\\"},[0,${literal}]]}`]) {
        const message = await receive(data);
        expect(message.id).toBe('msg_1');
        expect(() => message.event).toThrow(
          expect.objectContaining({ code: 'number_not_exact', message: expect.stringContaining(literal) as string }) as Error,
        );
      }
    // Whatever JavaScript writes, digits in strings, and fractions, which are rounded everywhere.
    for (const data of [
      JSON.stringify({ a: 2 ** 53 - 1, b: 1e20, c: 1e300, d: '9007199254740993', e: '\\"9007199254740993' }),
      '{"f":0.12345678901234567890123}',
    ])
      expect((await receive(data)).event?.data).toEqual(JSON.parse(data));
  },
);
