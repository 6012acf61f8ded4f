import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { stringify as toToml } from 'smol-toml';
import * as age from 'age-encryption';
import { stringify as toYaml } from 'yaml';
import { beforeAll, describe, expect, test } from 'vitest';
import { newIdentity, seal, writeIdentity, type TestIdentity } from '../../test/age-identity.ts';
import { SOPS_IDENTITY, SOPS_JSON, SOPS_VALUES, SOPS_YAML } from '../../test/sops-documents.ts';
import { temporaryFolder } from '../../test/temporary-folder.ts';
import { parseFile } from '../document/formats.ts';
import { LoadFailure } from '../document/load-failure.ts';
import { Keyring } from './keyring.ts';
import { openFile, type OpenedFile } from './open-secrets.ts';
import { sopsMac } from './sops-document.ts';
import { encodeSopsValue, macBytes, sealSopsValue, sopsPath } from './sops-value.ts';

let own: TestIdentity;
let other: TestIdentity;

beforeAll(async () => {
  own = await newIdentity();
  other = await newIdentity();
});

interface Case {
  readonly path?: string;
  readonly table?: string;
  readonly keyring?: Keyring;
}

function open(text: string, { path = '/etc/config/billing.toml', table, keyring = own.keyring }: Case = {}): Promise<OpenedFile> {
  const bytes = Buffer.from(text);
  const origin = `file ${path}`;
  const scope = table === undefined ? {} : { table };
  return openFile({ path, origin, bytes, raw: parseFile(path, bytes, origin), ...scope }, { keyring, mounts: [], ownFiles: [] });
}

async function failureOf(opening: Promise<unknown>): Promise<LoadFailure> {
  const error = await opening.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(LoadFailure);
  return error as LoadFailure;
}

const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? Number(item) : item)));

describe('ENC[age,…]', () => {
  test('a value decrypts to what was encrypted, of every type', async () => {
    for (const value of ['text', 'two\nlines', '', 5, 1.5, true, null, ['a', 1], { host: 'db', port: 5432 }]) {
      const text = `[billing]\nsecret = "${await seal(own, 'billing.toml', 'billing.secret', value)}"\n`;
      expect(plain((await open(text)).raw)).toEqual({ billing: { secret: value } });
    }
  });

  test('any of several identities decrypts', async () => {
    const both = new Keyring(age, [other.identity, own.identity]);
    for (const identity of [own, other]) {
      const text = `a = "${await seal(identity, 'billing.toml', 'a', 'x')}"\n`;
      expect(plain((await open(text, { keyring: both })).raw)).toEqual({ a: 'x' });
    }
  });

  test('a decrypted value is final: it is not decrypted again and not followed as a reference', async () => {
    const inner = await seal(own, 'billing.toml', 'a', 'inner');
    for (const value of [inner, 'ref+file:///etc/passwd', 'ENC[AES256_GCM,data:x]']) {
      expect(plain((await open(`a = "${await seal(own, 'billing.toml', 'a', value)}"\n`)).raw)).toEqual({ a: value });
    }
  });

  test('a value that was moved to another key, array position or file does not load', async () => {
    const value = await seal(own, 'billing.toml', 'billing.a', 'secret-5ecret');
    const element = await seal(own, 'billing.toml', 'billing.list.0', 'secret-5ecret');
    const deep = await seal(own, 'production/billing.toml', 'billing.a', 'secret-5ecret');
    const moved: [string, string][] = [
      [`[billing]\nb = "${value}"\n`, '/etc/config/billing.toml'],
      [`[orders]\na = "${value}"\n`, '/etc/config/billing.toml'],
      [`[billing]\nlist = ["x", "${element}"]\n`, '/etc/config/billing.toml'],
      [`[billing]\na = "${value}"\n`, '/etc/config/orders.toml'],
      [`[billing]\na = "${value}"\n`, '/etc/config/my-billing.toml'],
      [`[billing]\na = "${deep}"\n`, '/etc/development/billing.toml'],
      [`[billing]\na = "${await seal(own, '../billing.toml', 'billing.a', 1)}"\n`, '/etc/config/billing.toml'],
      [`[billing]\na = "${await seal(own, '', 'billing.a', 1)}"\n`, '/etc/config/billing.toml'],
    ];
    for (const [text, path] of moved) {
      const failure = await failureOf(open(text, { path }));
      expect(failure).toMatchObject({ kind: 'decrypt', origin: `file ${path}` });
      expect(failure.message).toContain('was encrypted for another key or file');
      expect(failure.message).not.toContain('5ecret');
    }
    const { raw } = await open(`[billing]\na = "${deep}"\n`, { path: '/srv/production/billing.toml' });
    expect(plain(raw)).toEqual({ billing: { a: 'secret-5ecret' } });
  });

  test('a truncated or changed ciphertext, and one for other recipients, does not load; the failure names file and key', async () => {
    const whole = await seal(own, 'billing.toml', 'billing.a', 'secret-5ecret');
    const base64 = whole.slice('ENC[age,'.length, -1);
    const bytes = Buffer.from(base64, 'base64');
    const wrap = (file: Uint8Array): string => `ENC[age,${Buffer.from(file).toString('base64')}]`;
    const damaged = [
      ...[0, 1, 20, 21, 60, 150, bytes.length - 17, bytes.length - 1].map((length) => wrap(bytes.subarray(0, length))),
      ...[0, 30, 90, 140, bytes.length - 20, bytes.length - 1].map((at) => {
        const changed = Buffer.from(bytes);
        changed[at]! ^= 1;
        return wrap(changed);
      }),
      wrap(Buffer.concat([bytes, Buffer.from('x')])),
      'ENC[age,]',
      'ENC[age,',
      `ENC[age,${base64}`,
      `ENC[age,${base64}] `,
      `ENC[age,%${base64}]`,
      await seal(other, 'billing.toml', 'billing.a', 'secret-5ecret'),
    ];
    for (const text of damaged) {
      const failure = await failureOf(open(`[billing]\na = "${text}"\n`));
      expect(failure).toMatchObject({ kind: 'decrypt', origin: 'file /etc/config/billing.toml', key: 'billing.a' });
      expect(failure.message).toMatch(/^key billing\.a /);
      expect(failure.message).not.toMatch(/5ecret|ENC\[age,[^…]/);
    }
  });

  test('a plaintext that is not a bound value does not load', async () => {
    const encrypter = new age.Encrypter();
    encrypter.addRecipient(own.recipient);
    for (const plaintext of [
      'just a password',
      '"x"',
      '[]',
      '{}',
      '{"key":"a","value":1}',
      '{"file":"billing.toml","key":"a","value":1,"x":1}',
      '{"file":1,"key":"a","value":1}',
    ]) {
      const text = `ENC[age,${Buffer.from(await encrypter.encrypt(plaintext)).toString('base64')}]`;
      expect((await failureOf(open(`a = "${text}"\n`))).message).toContain('not to a value of this format');
    }
  });

  test('a header with very many recipients is refused before any key agreement', async () => {
    const stanza = `-> X25519 ${Buffer.alloc(32, 1).toString('base64').replace('=', '')}\n${Buffer.alloc(32).toString('base64').replace('=', '')}\n`;
    for (const [count, sentence] of [
      [65, 'more recipients'],
      [100_000, 'damaged'],
    ] as const) {
      const file = `age-encryption.org/v1\n${stanza.repeat(count)}--- ${Buffer.alloc(32).toString('base64').replace('=', '')}\n`;
      const began = performance.now();
      const text = `ENC[age,${Buffer.from(file).toString('base64').slice(0, 1_800_000)}]`;
      expect((await failureOf(open(`a = "${text}"\n`))).message).toContain(sentence);
      expect(performance.now() - began).toBeLessThan(5_000);
    }
  });

  test('the work that one file can cause is bounded', async () => {
    const value = await seal(other, 'billing.toml', 'a', 1);
    const many = new Keyring(
      age,
      Array.from({ length: 60 }, () => own.identity),
    );
    expect((await failureOf(open(`list = ["${value}"]\n`, { keyring: many }))).message).toContain('any identity');
    // 90 values with 60 identities each are beyond the budget.
    const sealed = await Promise.all(Array.from({ length: 90 }, (_, index) => seal(own, 'billing.toml', `list.${index}`, index)));
    expect((await failureOf(open(`list = ${JSON.stringify(sealed)}\n`, { keyring: many }))).message).toContain(
      'one encrypted value too many',
    );
  });

  test('only the served table is opened: a secret of another application is not touched', async () => {
    const billing = await seal(own, 'billing.toml', 'billing.a', 1);
    const foreign = await seal(other, 'billing.toml', 'orders.a', 1);
    const text = `[billing]\na = "${billing}"\n[orders]\na = "${foreign}"\n`;
    expect(plain((await open(text, { table: 'billing' })).raw)).toEqual({ billing: { a: 1 }, orders: { a: foreign } });
    expect((await failureOf(open(text))).key).toBe('orders.a');
  });

  test('keys such as __proto__ are data', async () => {
    // 90 values with 60 identities each are beyond the budget.
    const sealed = await seal(own, 'billing.json', '__proto__.polluted', 'yes');
    const { raw } = await open(`{"__proto__": {"polluted": "${sealed}"}}`, { path: '/c/billing.json' });
    expect(Object.keys(raw)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

type Leaf = string | number | boolean;

/** A SOPS document as sops writes it: every leaf encrypted, except those a rule leaves alone. */
async function sopsDocument(
  values: Record<string, unknown>,
  options: { recipients?: string[]; metadata?: Record<string, unknown>; isEncrypted?: (keys: readonly string[]) => boolean } = {},
): Promise<Record<string, unknown>> {
  const {
    recipients = [own.recipient],
    metadata = {},
    isEncrypted = (keys) => !keys.some((key) => key.endsWith('_unencrypted')),
  } = options;
  const dataKey = randomBytes(32);
  const mac = sopsMac({ macOnlyEncrypted: metadata['mac_only_encrypted'] === true });
  const encrypt = (value: unknown, keys: readonly string[]): unknown => {
    if (Array.isArray(value)) return value.map((item) => encrypt(item, keys));
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, encrypt(item, [...keys, key])]));
    }
    if (value === null) return value;
    mac.add(macBytes(value as Leaf), isEncrypted(keys));
    if (!isEncrypted(keys) || value === '') return value;
    return sealSopsValue(encodeSopsValue(value as Leaf), dataKey, sopsPath(keys));
  };
  const encrypted = encrypt(values, []) as Record<string, unknown>;
  const lastmodified = '2026-01-02T03:04:05Z';
  const entries = recipients.map((recipient) => ({ recipient, enc: sealArmored(recipient, dataKey) }));
  return {
    ...encrypted,
    sops: {
      age: await Promise.all(entries.map(async ({ recipient, enc }) => ({ recipient, enc: await enc }))),
      lastmodified,
      mac: sealSopsValue({ type: 'str', bytes: Buffer.from(mac.digest()) }, dataKey, lastmodified),
      version: '3.10.2',
      ...metadata,
    },
  };
}

async function sealArmored(recipient: string, dataKey: Uint8Array): Promise<string> {
  const encrypter = new age.Encrypter();
  encrypter.addRecipient(recipient);
  return age.armor.encode(await encrypter.encrypt(dataKey));
}

const VALUES = {
  billing: {
    password: 'correct horse',
    empty: '',
    port: 5432,
    ratio: 0.25,
    tiny: 1e-9,
    large: 1e21,
    on: true,
    off: false,
    hosts: ['a', 'b'],
    note_unencrypted: 'visible',
    nested: { b: 'B', a: 'A' },
    users: [{ name: 'ann', password: 'x' }],
  },
};

describe('SOPS documents', () => {
  const formats: [string, (document: Record<string, unknown>) => string][] = [
    ['/c/billing.yaml', (document) => toYaml(document)],
    ['/c/billing.json', (document) => JSON.stringify(document, null, '\t')],
    ['/c/billing.toml', (document) => toToml(document)],
  ];

  test.each(formats)('%s decrypts, with every type, and without its metadata', async (path, write) => {
    const { raw, via } = await open(write(await sopsDocument(VALUES)), { path });
    expect(plain(raw)).toEqual(VALUES);
    expect(via.get('billing.password')).toBe('sops');
    expect(via.has('billing.note_unencrypted')).toBe(false);
  });

  test.each(formats)('%s: a value changed, moved, swapped, added, removed or left in plain text does not load', async (path, write) => {
    const document = await sopsDocument(VALUES);
    const foreign = await sopsDocument(VALUES);
    const changes: Record<string, (billing: Record<string, unknown>) => void> = {
      swapped: (billing) => ([billing['password'], billing['port']] = [billing['port'], billing['password']]),
      'from another document': (billing) => (billing['password'] = (foreign['billing'] as Record<string, unknown>)['password']),
      'in plain text': (billing) => (billing['password'] = 'injected-5ecret'),
      'a number in plain text': (billing) => (billing['port'] = 1),
      removed: (billing) => delete billing['password'],
      added: (billing) => (billing['more_unencrypted'] = 'x'),
      'unencrypted part changed': (billing) => (billing['note_unencrypted'] = 'changed'),
      'array order': (billing) => (billing['hosts'] as unknown[]).reverse(),
      truncated: (billing) => (billing['password'] = String(billing['password']).slice(0, 60)),
      emptied: (billing) => (billing['password'] = ''),
      'short tag': (billing) => (billing['password'] = String(billing['password']).replace(/tag:[^,]+/, 'tag:AAAA')),
      'other type': (billing) => (billing['password'] = String(billing['password']).replace('type:str', 'type:int')),
    };
    for (const [name, change] of Object.entries(changes)) {
      const copy = structuredClone(document);
      change(copy['billing'] as Record<string, unknown>);
      const failure = await failureOf(open(write(copy), { path }));
      expect({ name, kind: failure.kind, origin: failure.origin }).toEqual({ name, kind: 'decrypt', origin: `file ${path}` });
      expect(failure.message).not.toMatch(/5ecret|correct horse|AES256/);
    }
  });

  test('the MAC covers values in the order of the file, also where keys look like integers', async () => {
    const dataKey = randomBytes(32);
    const mac = sopsMac({ macOnlyEncrypted: false });
    for (const value of ['ten', 'two', 'a "quoted": key']) mac.add(macBytes(value), true);
    const cipher = (value: string, key: string): string => JSON.stringify(sealSopsValue(encodeSopsValue(value), dataKey, `${key}:`));
    const lastmodified = '2026-01-02T03:04:05Z';
    const sops = {
      age: [{ recipient: own.recipient, enc: await sealArmored(own.recipient, dataKey) }],
      lastmodified,
      mac: sealSopsValue({ type: 'str', bytes: Buffer.from(mac.digest()) }, dataKey, lastmodified),
    };
    const rest = '"x\\"y\\\\": ';
    const text = `{\n\t"10": ${cipher('ten', '10')},\n\t"2": ${cipher('two', '2')},\n\t${rest}${cipher('a "quoted": key', 'x"y\\')},\n\t"sops": ${JSON.stringify(sops)}\n}\n`;
    for (const path of ['/c/a.json', '/c/a.yaml']) {
      const opened = open(path.endsWith('yaml') ? text.replaceAll('\t', '  ') : text, { path });
      expect(plain((await opened).raw)).toEqual({ '10': 'ten', '2': 'two', 'x"y\\': 'a "quoted": key' });
    }
  });

  test('tampered metadata do not load: MAC removed, exchanged or dated back, rules changed', async () => {
    const document = await sopsDocument(VALUES);
    const foreign = await sopsDocument(VALUES);
    const changes: ((sops: Record<string, unknown>) => void)[] = [
      (sops) => delete sops['mac'],
      (sops) => (sops['mac'] = ''),
      (sops) => (sops['mac'] = (foreign['sops'] as Record<string, unknown>)['mac']),
      (sops) => (sops['lastmodified'] = '2020-01-01T00:00:00Z'),
      (sops) => delete sops['lastmodified'],
      (sops) => (sops['unencrypted_suffix'] = 'd'),
      (sops) => (sops['encrypted_regex'] = '^nothing$'),
      (sops) => (sops['mac_only_encrypted'] = true),
      (sops) => (sops['age'] = []),
      (sops) => (sops['age'] = (foreign['sops'] as Record<string, unknown>)['age']),
      (sops) => (sops['age'] = 'text'),
      (sops) => (sops['key_groups'] = [{ age: sops['age'] }]),
      (sops) => (sops['encrypted_comment_regex'] = 'x'),
      (sops) => Object.assign(sops, { encrypted_regex: 'a', unencrypted_regex: 'b' }),
    ];
    for (const change of changes) {
      const copy = structuredClone(document);
      change(copy['sops'] as Record<string, unknown>);
      expect((await failureOf(open(toYaml(copy), { path: '/c/billing.yaml' }))).kind).toBe('decrypt');
    }
  });

  test('without an identity of a recipient the document does not load; with one of several it does', async () => {
    const foreign = toYaml(await sopsDocument(VALUES, { recipients: [other.recipient] }));
    expect(await failureOf(open(foreign, { path: '/c/billing.yaml' }))).toMatchObject({ kind: 'decrypt', key: 'sops.age' });
    const shared = toYaml(await sopsDocument(VALUES, { recipients: [other.recipient, own.recipient] }));
    expect(plain((await open(shared, { path: '/c/billing.yaml' })).raw)).toEqual(VALUES);
  });

  test.each([
    [{ encrypted_regex: '^(password|users)$' }, (keys: readonly string[]) => keys.some((key) => /^(password|users)$/.test(key))],
    [{ encrypted_regex: '(?i)PASSWORD' }, (keys: readonly string[]) => keys.some((key) => /password/i.test(key))],
    [{ unencrypted_regex: '^(port|ratio)$' }, (keys: readonly string[]) => !keys.some((key) => /^(port|ratio)$/.test(key))],
    [{ encrypted_suffix: 'word' }, (keys: readonly string[]) => keys.some((key) => key.endsWith('word'))],
    [{ unencrypted_suffix: 'word' }, (keys: readonly string[]) => !keys.some((key) => key.endsWith('word'))],
    [{ encrypted_regex: 'password', mac_only_encrypted: true }, (keys: readonly string[]) => keys.includes('password')],
  ])('the rule %j decides what is encrypted', async (metadata, isEncrypted) => {
    const document = await sopsDocument(VALUES, { metadata, isEncrypted });
    for (const [path, write] of formats) expect(plain((await open(write(document), { path })).raw)).toEqual(VALUES);
    expect(JSON.stringify(document)).toContain('AES256_GCM');
  });

  test('a pattern that backtracks without end fails the load and does not stop the process', async () => {
    const document = await sopsDocument({ ['a'.repeat(40)]: 'x' }, { metadata: { encrypted_regex: '^(a+)+$b' } });
    const began = performance.now();
    expect((await failureOf(open(toYaml(document), { path: '/c/billing.yaml' }))).key).toBe('sops.encrypted_regex');
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  test('aliases are refused, so that a small document cannot become a large one', async () => {
    const text = toYaml(await sopsDocument({ a: 'x', b_unencrypted: 'y' }));
    const aliased = text.replace('b_unencrypted: y', 'b_unencrypted: &b [y, y]\nc_unencrypted: [*b, *b, *b]');
    expect((await failureOf(open(aliased, { path: '/c/billing.yaml' }))).message).toContain('aliases');
  });

  test('a SOPS value in a file without metadata does not load, instead of being served as text', async () => {
    const { sops: _, ...rest } = await sopsDocument({ a: 'x' });
    expect(await failureOf(open(toYaml(rest), { path: '/c/billing.yaml' }))).toMatchObject({ kind: 'decrypt', key: 'a' });
  });

  test.each([
    ['/c/secret.yaml', SOPS_YAML],
    ['/c/secret.json', SOPS_JSON],
  ])('%s as sops writes it decrypts', async (path, text) => {
    const { raw } = await open(text, { path, keyring: new Keyring(age, [SOPS_IDENTITY]) });
    expect(plain(raw)).toEqual(SOPS_VALUES);
  });

  test('numbers are written as sops writes them, also the negative zero of a float', () => {
    const texts = [-0, 0, 1e21, -1.5e-7, 12345678901234567890n].map((value) => [encodeSopsValue(value).type, String(macBytes(value))]);
    expect(texts).toEqual([
      ['float', '-0'],
      ['int', '0'],
      ['float', '1000000000000000000000'],
      ['float', '-0.00000015'],
      ['int', '12345678901234567890'],
    ]);
  });

  test('an application called sops is not taken for metadata', async () => {
    expect(plain((await open('[sops]\npool = 5\n')).raw)).toEqual({ sops: { pool: 5 } });
  });
});

const AGE = spawnSync('age', ['--version']).status === 0;

// `.ci/run` installs the package.
test('age is installed where everything must be tested', () => {
  expect(AGE || process.env['KIT_REQUIRE_AGE'] === undefined).toBe(true);
});

describe.runIf(AGE)('the age program', () => {
  test('what it encrypts is opened: a single value, and the data key of a SOPS document', async () => {
    const payload = JSON.stringify({ file: 'billing.toml', key: 'billing.a', value: 'made by age' });
    const value = execFileSync('age', ['-r', own.recipient, '-r', other.recipient], { input: payload }).toString('base64');
    expect(plain((await open(`[billing]\na = "ENC[age,${value}]"\n`)).raw)).toEqual({ billing: { a: 'made by age' } });
    const dataKey = randomBytes(32);
    const enc = execFileSync('age', ['-a', '-r', own.recipient], { input: dataKey }).toString();
    const mac = sopsMac({ macOnlyEncrypted: false });
    mac.add(macBytes('x'), true);
    const lastmodified = '2026-01-02T03:04:05Z';
    const document = {
      a: sealSopsValue(encodeSopsValue('x'), dataKey, 'a:'),
      sops: {
        age: [{ recipient: own.recipient, enc }],
        lastmodified,
        mac: sealSopsValue({ type: 'str', bytes: Buffer.from(mac.digest()) }, dataKey, lastmodified),
      },
    };
    expect(plain((await open(toYaml(document), { path: '/c/a.yaml' })).raw)).toEqual({ a: 'x' });
  });

  test('it opens what we encrypt', async () => {
    const folder = await temporaryFolder();
    const identity = writeIdentity(folder, 'identity.txt', own);
    const text = await seal(own, 'billing.toml', 'billing.a', { host: 'db' });
    const input = Buffer.from(text.slice('ENC[age,'.length, -1), 'base64');
    const printed = execFileSync('age', ['-d', '-i', identity], { input }).toString();
    expect(JSON.parse(printed)).toEqual({ file: 'billing.toml', key: 'billing.a', value: { host: 'db' } });
  });
});
