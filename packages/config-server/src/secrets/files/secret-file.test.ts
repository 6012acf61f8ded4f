import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import * as age from 'age-encryption';
import fc from 'fast-check';
import { stringify as toToml } from 'smol-toml';
import { stringify as toYaml } from 'yaml';
import { beforeAll, describe, expect, test } from 'vitest';
import { newIdentity, type TestIdentity } from '../../../test/age-identity.ts';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { parseFile } from '../../document/formats.ts';
import { Keyring } from '../keyring.ts';
import { DEFAULT_RULE } from '../sops-rules.ts';
import { openSopsValue, sealSopsValue, sopsPath } from '../sops-value.ts';
import { locateValues } from './file-text.ts';
import { readSnapshot, replaceFile } from './replace-file.ts';
import { openText } from './open-text.ts';
import { rekeyDocument, resealDocument, sealDocument } from './seal-document.ts';
import { checkMoved, sealValues, type Sealing } from './seal-values.ts';

let own: TestIdentity;
let other: TestIdentity;
const NOW = new Date('2026-05-06T07:08:09Z');

beforeAll(async () => {
  own = await newIdentity();
  other = await newIdentity();
});

const sealing = (...identities: TestIdentity[]): Sealing => ({ age, recipients: identities.map(({ recipient }) => recipient), name: 'a' });
const parsed = (path: string, text: string): unknown =>
  JSON.parse(
    JSON.stringify(parseFile(path, Buffer.from(text), ''), (_, item: unknown) => (typeof item === 'bigint' ? Number(item) : item)),
  );
const changedLines = (before: string, after: string): string[] => {
  const known = new Set(before.split('\n'));
  return after.split('\n').filter((line) => !known.has(line));
};

function leaves(value: unknown): number {
  if (value === null) return 0;
  return typeof value === 'object' ? Object.values(value).reduce((sum: number, item) => sum + leaves(item), 0) : 1;
}

const TEXTS: Readonly<Record<string, string>> = {
  '/c/a.toml': `# Billing
[billing]   # the application
currency = "EUR"      # ISO 4217
"quoted.key" = 'literal "x" \\'
started = 2024-01-02 03:04:05
day = 2024-01-02
ratio=0.5
hex = 0xff
on = true
text = """
multi ""quoted"" # not a comment
line"""
raw = '''it's # raw'''

[billing.database]
hosts = [
  "a", # first
  [ "nested" ], { x = 1, 'y' = [2, 3] },
]
inline = { soft = 1, deep.er = "x" }

[[billing.users]]
name = "ann"
[billing.users.address]
city = "Bern"
[[billing.users]]
name = "bob"
`,
  '/c/a.yaml': `# Billing
billing: # the application
    currency: EUR      # ISO 4217
    "10": ten
    "2": 'two ''quoted'''
    none:
    empty: ""
    text: |
        several
          lines

    folded: >-
        a
        b
    plain: more
      than one line
    list: [a, 'b', 3, {x: "y"}]
    users:
        - name: ann
          admin: true
        -   - nested
    last: true
`,
  '/c/a.json':
    '{\n\t"billing": {\n\t\t"10": "t\\"e}n",\n\t\t"2": 2e3,\n\t\t"list": [1.5, true, null, "x", {"y": []}],\n\t\t"e": {},\n\t\t"\\u00e9": "é"\n\t}\n}\n',
};

describe.each(Object.entries(TEXTS))('%s', (path, text) => {
  test('every value has a place, and the text at the place is the value', () => {
    for (const { start, end, value, path: keys } of locateValues(path, text)) {
      const part = text.slice(start, end);
      expect(part).not.toBe('');
      const shown = typeof value === 'string' && /^\w+$/.test(value) ? value : '';
      expect({ keys, part }).toEqual({ keys, part: expect.stringContaining(shown) as string });
    }
    expect(locateValues(path, text).filter(({ container, value }) => !container && value !== null)).toHaveLength(
      leaves(parsed(path, text)),
    );
  });

  test('encrypting as a SOPS document keeps everything but the values, and decrypting gives them back', async () => {
    const sealed = await sealDocument(path, text, DEFAULT_RULE, sealing(own), NOW);
    // Not the ciphertext, which may have any letters.
    expect(sealed.replaceAll(/ENC\[[^\]]*\]|^ *\S{64}$/gm, '')).not.toMatch(/EUR|ann|nested|several/);
    expect(sealed.match(/#[^\n]*/g)?.slice(0, 2)).toEqual(text.match(/#[^\n]*/g)?.slice(0, 2));
    const open = await openText(path, sealed, own.keyring);
    expect(parsed(path, open.text)).toEqual(parsed(path, text));
  });

  test('saving without a change of values changes nothing but the time and the MAC', async () => {
    const sealed = await sealDocument(path, text, DEFAULT_RULE, sealing(own), NOW);
    const open = await openText(path, sealed, own.keyring);
    const again = resealDocument(path, open.text, open, new Date('2027-01-01T00:00:00Z'));
    expect(changedLines(sealed, again).every((line) => /lastmodified|mac/.test(line))).toBe(true);
    expect(again.split('\n')).toHaveLength(sealed.split('\n').length);
  });

  test('a recipient that is added changes only the metadata; one that is removed gets a new data key for every value', async () => {
    const sealed = await sealDocument(path, text, DEFAULT_RULE, sealing(own), NOW);
    const open = await openText(path, sealed, own.keyring);
    const added = await rekeyDocument(path, open.text, open, sealing(own, other), NOW);
    const values = (file: string): string[] => (file.match(/ENC\[AES256_GCM,[^\]]+\]/g) ?? []).slice(0, -1);
    expect(values(added)).toEqual(values(sealed));
    for (const { keyring } of [own, other]) expect(parsed(path, (await openText(path, added, keyring)).text)).toEqual(parsed(path, text));
    const shared = await openText(path, added, own.keyring);
    const removed = await rekeyDocument(path, shared.text, shared, sealing(other), NOW);
    expect(values(removed).filter((value) => values(added).includes(value))).toEqual([]);
    await expect(openText(path, removed, own.keyring)).rejects.toThrow(/no identity/);
    expect(parsed(path, (await openText(path, removed, other.keyring)).text)).toEqual(parsed(path, text));
  });
});

test('single values: only the named ones change, unchanged ones keep their ciphertext, a whole table can be one', async () => {
  const path = '/c/a.toml';
  const name = { ...sealing(own), name: 'a.toml' };
  const keys = new Set(['billing.currency', 'billing.database.inline', 'billing.users.1.name', 'billing.text']);
  const sealed = await sealValues(path, TEXTS[path]!, keys, name);
  expect(changedLines(TEXTS[path]!, sealed)).toHaveLength(4);
  const open = await openText(path, sealed, own.keyring);
  expect(parsed(path, open.text)).toEqual(parsed(path, TEXTS[path]!));
  const edited = open.text.replace('"EUR"', '"CHF"').replace('0.5', '0.75');
  const again = await sealValues(path, edited, new Set(), name, open.sealed);
  expect(changedLines(sealed, again).map((line) => line.split(/\s*=/)[0])).toEqual(['currency', 'ratio']);
  expect((await openText(path, again, own.keyring)).text).toBe(edited);
});

test('what cannot be edited in place is refused with a sentence', async () => {
  const refused: [string, RegExp][] = [
    ['a: &x 1\nb: *x\n', /key a has an anchor/],
    ['a: !!int "5"\n', /key a has a tag/],
    ['{a: 1}\n', /in a simpler way|cannot be edited/],
    ['<<: {a: 1}\nb: 1\n', /merge key/],
    ['? [a]\n: 1\n', /not a scalar/],
    ['a: 12345678901234567890\n', /beyond/],
  ];
  for (const [text, sentence] of refused) {
    await expect(sealDocument('/c/a.yaml', text, DEFAULT_RULE, sealing(own), NOW)).rejects.toThrow(sentence);
  }
});

const scalar = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true, max: 1e9, min: -1e9 }),
  fc.boolean(),
);
const key = fc
  .oneof(fc.stringMatching(/^[a-z]{1,6}$/), fc.string({ minLength: 1, maxLength: 5 }))
  .filter((name) => name !== 'sops' && name !== '__proto__' && name !== '<<');
const table = fc.dictionary(
  key,
  fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.dictionary(key, scalar, { maxKeys: 3, noNullPrototype: true })),
  { minKeys: 1, maxKeys: 5, noNullPrototype: true },
);

test.each([
  ['/c/a.toml', (value: object) => toToml(value)],
  ['/c/a.yaml', (value: object) => toYaml(value)],
  ['/c/a.json', (value: object) => JSON.stringify(value, null, 2)],
] as const)('%s: any document decrypts to what was encrypted', async (path, write) => {
  const keyring = new Keyring(age, [own.identity]);
  await fc.assert(
    fc.asyncProperty(table, async (value) => {
      const text = write(value);
      const wanted = parsed(path, text);
      const sealed = await sealDocument(path, text, DEFAULT_RULE, sealing(own), NOW);
      expect(parsed(path, (await openText(path, sealed, keyring)).text)).toEqual(wanted);
    }),
    { numRuns: 40 },
  );
});

test.each([
  ['/c/a.toml', 'a = { b = { c = "x", d = [1] } }\n'],
  ['/c/a.json', '{"a":{"b":{"c":"x","d":[1]}}}'],
  ['/c/a.yaml', 'a:\n  b:\n    c: x\n    d: [1]\n'],
])('%s: a key inside a key that is encrypted as a whole is refused', async (path, text) => {
  for (const keys of [
    ['a.b', 'a.b.c'],
    ['a.b.d.0', 'a'],
  ]) {
    await expect(sealValues(path, text, new Set(keys), sealing(own))).rejects.toThrow(
      /is inside key a(\.b)?, which is encrypted as a whole/,
    );
  }
});

test('a file with encrypted values is not encrypted once more, except for keys that the rule leaves alone', async () => {
  const single = await sealValues('/c/a', 'a: secret\nb: other\n', new Set(['a']), sealing(own));
  await expect(sealDocument('/c/a', single, DEFAULT_RULE, sealing(own), NOW)).rejects.toThrow('key a is encrypted already');
  const mixed = await sealDocument('/c/a', single, { name: 'encrypted_regex', pattern: '^b$' }, sealing(own), NOW);
  expect((await openText('/c/a', mixed, own.keyring)).text).toBe('a: secret\nb: other\n');
  const orphan = 'a: ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]\n';
  await expect(sealDocument('/c/a', orphan, DEFAULT_RULE, sealing(own), NOW)).rejects.toThrow('key a is encrypted already');
});

test.each(['pgp', 'a_kind_of_the_future'])('a document with recipients of %s keeps them: rekey refuses it', async (kind) => {
  const sealed = await sealDocument('/c/a.yaml', TEXTS['/c/a.yaml']!, DEFAULT_RULE, sealing(own), NOW);
  const open = await openText('/c/a.yaml', sealed.replace(/^sops:\n/m, `sops:\n  ${kind}:\n    - enc: x\n`), own.keyring);
  await expect(rekeyDocument('/c/a.yaml', open.text, open, sealing(own, other), NOW)).rejects.toThrow('sops updatekeys');
});

test('a document that also has a key of a key service, created when it was saved, can be edited', async () => {
  const sealed = await sealDocument('/c/a.yaml', TEXTS['/c/a.yaml']!, DEFAULT_RULE, sealing(own), NOW);
  const kms = '  kms:\n    - arn: x\n      created_at: "2026-05-06T07:08:09Z"\n';
  const open = await openText('/c/a.yaml', sealed.replace(/^sops:\n/m, `sops:\n${kms}`), own.keyring);
  const saved = resealDocument('/c/a.yaml', open.text.replace('EUR', 'CHF'), open, new Date('2027-01-01T00:00:00Z'));
  expect(saved).toContain(kms);
  expect((await openText('/c/a.yaml', saved, own.keyring)).text).toBe(open.text.replace('EUR', 'CHF'));
});

test.each(Object.entries(TEXTS))('%s: rekey keeps a MAC of encrypted values only', async (path, text) => {
  const open = await openText(path, await sealDocument(path, text, DEFAULT_RULE, sealing(own), NOW), own.keyring);
  const only = { ...open, sops: { ...open.sops!, metadata: { ...open.sops!.metadata, macOnlyEncrypted: true } } };
  const rekeyed = await rekeyDocument(path, open.text, only, sealing(other), NOW);
  const opened = await openText(path, rekeyed, other.keyring);
  expect([opened.text, opened.sops!.metadata.macOnlyEncrypted]).toEqual([open.text, true]);
});

describe('comments that sops encrypted', () => {
  const plain = `# head
billing:
    # before a key
    password: correct horse # beside it
    # at the end of a table
users:
    # before an element
    - name: ann
      # in a table of an array
      note: "a # in a string"
    - bob
text_unencrypted: |
    # a line of text
    #ENC[AES256_GCM,data:x,iv:x,tag:x,type:comment]
# at the end
`;
  const tables: Readonly<Record<string, readonly string[]>> = {
    ' head': [],
    ' before a key': ['billing'],
    ' beside it': ['billing'],
    ' at the end of a table': ['billing'],
    ' before an element': ['users'],
    ' in a table of an array': ['users'],
    ' at the end': [],
  };
  /** As sops writes it, which authenticates a comment with the keys of the table or array it is in. */
  const document = async (): Promise<string> => {
    const sealed = await sealDocument('/c/a.yaml', plain, DEFAULT_RULE, sealing(own), NOW);
    const { dataKey } = (await openText('/c/a.yaml', sealed, own.keyring)).sops!;
    return Object.entries(tables).reduce((text, [comment, keys]) => {
      const ciphertext = sealSopsValue({ type: 'comment', bytes: Buffer.from(comment) }, dataKey, sopsPath(keys));
      return text.replace(new RegExp(`#${comment}$`, 'm'), `#${ciphertext}`);
    }, sealed);
  };
  const ciphertexts = (text: string): string[] => text.match(/ENC\[\S+type:comment\]/g)!;

  test('are decrypted with the values, and a value that changes leaves them as they are', async () => {
    const text = await document();
    expect(ciphertexts(text)).toHaveLength(Object.keys(tables).length + 1);
    const open = await openText('/c/a.yaml', text, own.keyring);
    expect(open.text).toBe(plain);
    const saved = resealDocument('/c/a.yaml', open.text.replace('bob', 'eve'), open, new Date('2027-01-01T00:00:00Z'));
    expect(changedLines(text, saved).map((line) => line.trim().split(' ')[0])).toEqual(['-', 'lastmodified:', 'mac:']);
  });

  test('are encrypted when they are changed or new, for the table they are in', async () => {
    const open = await openText('/c/a.yaml', await document(), own.keyring);
    const edited = plain.replace('before a key', 'changed').replace('- bob', '# new\n    - bob');
    const saved = resealDocument('/c/a.yaml', edited, open, NOW);
    expect(saved).not.toMatch(/# ?(?:changed|new)/);
    expect((await openText('/c/a.yaml', saved, own.keyring)).text).toBe(edited);
    const { dataKey } = open.sops!;
    for (const [index, comment] of [
      [1, 'billing'],
      [6, 'users'],
    ] as const) {
      expect(openSopsValue(ciphertexts(saved)[index]!, dataKey, sopsPath([comment]))?.type).toBe('comment');
    }
  });

  test('get the new data key when a recipient is removed', async () => {
    const text = await document();
    const open = await openText('/c/a.yaml', text, own.keyring);
    const rekeyed = await rekeyDocument('/c/a.yaml', open.text, open, sealing(other), NOW);
    expect((await openText('/c/a.yaml', rekeyed, other.keyring)).text).toBe(plain);
    expect(ciphertexts(rekeyed).filter((ciphertext) => text.includes(ciphertext))).toEqual([
      'ENC[AES256_GCM,data:x,iv:x,tag:x,type:comment]',
    ]);
  });

  test('are not thrown away when they do not decrypt', async () => {
    const text = (await document()).replace(/^#ENC\[AES256_GCM,data:/, '#ENC[AES256_GCM,data:AAAA');
    await expect(openText('/c/a.yaml', text, own.keyring)).rejects.toThrow('the comment on line 1 does not decrypt');
  });
});

test.each([
  [
    '/c/a.yaml',
    'a:\n  key: |\n    BEGIN\n\n    # no comment\n    END\n  list:\n    - b: |-\n        x\n          y\n    - |\n        z "quoted" \\\n  last: 1\n',
  ],
  ['/c/a.toml', '[a]\nkey = """\nBEGIN\n\n# no comment\nEND\n"""\nlist = ["""\nx \\"quoted\\" \\\\\n  y""", 1]\n'],
])('%s: a text of several lines is edited as such', async (path, text) => {
  const sealed = await sealDocument(path, text, DEFAULT_RULE, sealing(own), NOW);
  expect(sealed).not.toContain('no comment');
  expect((await openText(path, sealed, own.keyring)).text).toBe(text);
});

test.each([
  ['/c/a.yaml', 'a: -0.0\nb: 1\n'],
  ['/c/a.toml', 'a = -0.0\nb = 1\n'],
  ['/c/a.json', '{\n  "a": -0.0,\n  "b": 1\n}\n'],
])('%s: a document with a negative zero can be edited', async (path, text) => {
  const open = await openText(path, await sealDocument(path, text, DEFAULT_RULE, sealing(own), NOW), own.keyring);
  expect(open.text).toBe(text);
  const saved = resealDocument(path, text.replace('1', '2'), open, NOW);
  expect((await openText(path, saved, own.keyring)).text).toBe(text.replace('1', '2'));
});

test('a number that another program wrote in another way is encrypted again, and the document can be edited', async () => {
  const text = 'a: 1000\nb: 1\n';
  const sealed = await sealDocument('/c/a.yaml', text, DEFAULT_RULE, sealing(own), NOW);
  const { sops } = await openText('/c/a.yaml', sealed, own.keyring);
  const { dataKey, metadata } = sops!;
  const mac = createHash('sha512').update('1e3').update('1').digest('hex').toUpperCase();
  const foreign = sealed
    .replace(/^a: .*/m, `a: ${sealSopsValue({ type: 'float', bytes: Buffer.from('1e3') }, dataKey, sopsPath(['a']))}`)
    .replace(metadata.mac, sealSopsValue({ type: 'str', bytes: Buffer.from(mac) }, dataKey, metadata.lastModified));
  const open = await openText('/c/a.yaml', foreign, own.keyring);
  expect(open.text).toBe(text);
  const saved = resealDocument('/c/a.yaml', open.text.replace('b: 1', 'b: 2'), open, NOW);
  expect((await openText('/c/a.yaml', saved, own.keyring)).text).toBe('a: 1000\nb: 2\n');
});

test('a text of several lines that a block cannot have is in quotes, and the comment of a block stays', async () => {
  const text = 'a: " x\\ny"\nb: "x\\r\\ny"\nc: "x\\n\\n"\nd: ["x\\ny"]\ne: "x\\ny" # beside\n';
  const open = async (plain: string): Promise<string> =>
    (await openText('/c/a.yaml', await sealDocument('/c/a.yaml', plain, DEFAULT_RULE, sealing(own), NOW), own.keyring)).text;
  expect(await open(text)).toBe(text);
  expect(await open('a: | # one\n  x\n  y\nb: >- # two\n  x\nc: 1\n')).toBe('a: "x\\ny\\n" # one\nb: x # two\nc: 1\n');
});

test.each([
  ['/c/a.yaml', 'a: x\r\nb:\r\n  - 1\r\n'],
  ['/c/a.toml', 'a = "x"\r\n\r\n[b]\r\nc = "several\\nlines"\r\n'],
  ['/c/a.json', '{\r\n  "a": "x",\r\n  "b": [1]\r\n}\r\n'],
  ['/c/a.json', '{"a":"x","b":[1]}'],
])('%s: the line ends of a file stay: %j', async (path, text) => {
  const sealed = await sealDocument(path, text, DEFAULT_RULE, sealing(own), NOW);
  const open = await openText(path, sealed, own.keyring);
  expect(open.text).toBe(text);
  const saved = resealDocument(path, text.replace('x', 'y'), open, NOW);
  expect((await openText(path, saved, own.keyring)).text).toBe(text.replace('x', 'y'));
  const ends = (written: string): Set<string> => new Set(written.match(/\r?\n/g));
  expect([ends(sealed), ends(saved)]).toEqual(text.includes('\r\n') ? [ends(text), ends(text)] : [new Set(['\n']), new Set(['\n'])]);
});

test('text of a TOML string that looks like the metadata stays where it is', async () => {
  const text = 'a = """\nx\n[sops]\ny = 1\n"""\nb = "secret"\n\n[c]\nd = 1\n';
  const sealed = await sealDocument('/c/a.toml', text, { name: 'encrypted_regex', pattern: '^b$' }, sealing(own), NOW);
  expect((await openText('/c/a.toml', sealed, own.keyring)).text).toBe(text);
});

test('a single value that was moved to another key is not saved in plain text', async () => {
  const sealed = await sealValues('/c/a.yaml', 'a: secret\nb: [first, second]\nc: 1\n', new Set(['a', 'b.0']), {
    ...sealing(own),
    name: 'a.yaml',
  });
  const open = await openText('/c/a.yaml', sealed, own.keyring);
  const save = async (text: string, ...keys: string[]): Promise<void> =>
    checkMoved('/c/a.yaml', open, await sealValues('/c/a.yaml', text, new Set(keys), sealing(own), open.sealed));
  await expect(save('renamed: secret\nb: [first, second]\nc: 1\n')).rejects.toThrow('key renamed has the value of key a');
  await expect(save('a: secret\nb: [new, first, second]\nc: 1\n')).rejects.toThrow('use --key b.1');
  await save('renamed: secret\nb: [first, second]\nc: 1\n', 'renamed');
  await save('a: other\nb: [first, third]\nc: 2\n');
});

test('a value of a SOPS document that was moved to a key that its rule does not encrypt is not saved in plain text', async () => {
  const path = '/c/a.toml';
  const rule = { name: 'encrypted_regex', pattern: '^password$' } as const;
  const text = '[a]\npassword = "correct horse"\nport = 1\n';
  const open = await openText(path, await sealDocument(path, text, rule, sealing(own), NOW), own.keyring);
  const save = (edited: string): void => checkMoved(path, open, resealDocument(path, edited, open, NOW));
  expect(() => save(text.replace('password', 'passwd'))).toThrow('key a.passwd has the value of key a.password, which was encrypted');
  for (const edited of [text.replace('horse', 'battery'), text.replace(/password.*\n/, ''), text.replace('[a]', '[b]')]) save(edited);
});

test.each(Object.entries(TEXTS))('%s: a byte order mark stays where it is', async (path, text) => {
  const file = join(await temporaryFolder(), basename(path));
  writeFileSync(file, `\uFEFF${text}`);
  const before = readSnapshot(file);
  replaceFile(before, await sealDocument(path, before.text, DEFAULT_RULE, sealing(own), NOW));
  expect(readFileSync(file, 'utf8').startsWith('\uFEFF')).toBe(true);
  const sealed = readSnapshot(file);
  expect(parsed(path, (await openText(path, sealed.text, own.keyring)).text)).toEqual(parsed(path, text));
});
