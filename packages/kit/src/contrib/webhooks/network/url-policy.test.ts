import { describe, expect, test } from 'vitest';
import { EMBEDDED_V4, METADATA, SPECIAL_V4, SPECIAL_V6 } from './address-table.ts';
import { parseAddress, parseCidr, specialBlock } from './address.ts';
import { httpTransport } from './transport.ts';
import { URLPolicy, URL_NOT_ALLOWED } from './url-policy.ts';

/** The first and the last address of a block. */
function edges(cidr: string): string[] {
  const { family, bits, prefix } = parseCidr(cidr);
  const width = family === 4 ? 32 : 128;
  const first = (bits >> BigInt(width - prefix)) << BigInt(width - prefix);
  const last = first | ((1n << BigInt(width - prefix)) - 1n);
  return [...new Set([first, last])].map((value) => format(family, value));
}

function format(family: 4 | 6, bits: bigint): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => String((bits >> shift) & 255n)).join('.');
  return `[${Array.from({ length: 8 }, (_, index) => ((bits >> BigInt(112 - index * 16)) & 0xffffn).toString(16)).join(':')}]`;
}

// Every block of the tables by its first and last address, and each inner entry of the registries by name.
const blocks = [...SPECIAL_V4, ...SPECIAL_V6, ...METADATA, ...EMBEDDED_V4].flatMap(({ cidr }) => edges(cidr));
const registryEntries = (
  '192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.88.99.2/32 255.255.255.255/32 ' +
  '2001::/32 2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 ' +
  '2001:20::/28 2001:30::/28 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 2002::/16'
)
  .split(' ')
  .flatMap((cidr) => edges(cidr));

const numericSpellings = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0x7F.0x0.0x0.0x1',
  '017700000001',
  '0177.0.0.1',
  '0177.0.0.01',
  '127.0.0.1.',
  '127.000.000.001',
  '0',
  '0.0.0.0',
  '00',
  '0x0',
  '10.1',
  '167772161',
  '0xa000001',
  '192.168.257',
  '3232235777',
  '0xa9fea9fe',
  '2852039166',
  '0251.0376.0251.0376',
  '169.254.43518',
  '１２７.0.0.1',
  '127。0。0。1',
  '①②⑦.0.0.1',
  '%31%32%37.0.0.1',
  '127.0.0.%31',
];

const v4InV6 = [
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[0:0:0:0:0:ffff:7f00:0001]',
  '[::FFFF:10.0.0.1]',
  '[::ffff:8.8.8.8]',
  '[::127.0.0.1]',
  '[::7f00:1]',
  '[::8.8.8.8]',
  '[::ffff:0:127.0.0.1]',
  '[::ffff:0:7f00:1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b::8.8.8.8]',
  '[64:ff9b:1::10.0.0.1]',
  '[64:ff9b:1:ffff::10.0.0.1]',
  '[2002:7f00:1::]',
  '[2002:a9fe:a9fe::1]',
  '[2002:808:808::1]',
  '[2001:0:7f00:1::]',
  '[2001:0:4136:e378:8000:63bf:80ff:fffe]',
  '[2a00::5efe:127.0.0.1]',
  '[2a00:1450::5efe:a00:1]',
  '[2a00:1450:4001::200:5efe:10.0.0.1]',
  '[fe80::5efe:192.168.0.1]',
];

const names = [
  'localhost',
  'LOCALHOST',
  'localhost.',
  'lOcAlHoSt..',
  'a.localhost',
  'localhost.localdomain',
  'ip6-localhost',
  'ⓛocalhost',
  'ｌｏｃａｌｈｏｓｔ',
  'loc\u00adalhost',
  'db',
  'redis',
  'intranet',
  'printer.local',
  'kubernetes.default.svc.cluster.local',
  'metadata.google.internal',
  'api.corp.internal',
  'host.docker.internal',
  'router.lan',
  'nas.home.arpa',
  'hidden.onion',
  'example.com.',
  'example.com..',
  '-example.com',
  'example-.com',
  'exa mple.com',
  `${'a'.repeat(64)}.com`,
  `${'a.'.repeat(127)}com`,
];

const wholeUrls = [
  '',
  ' ',
  'https://',
  'https:///path',
  'https:example.com',
  'https:/example.com',
  'https:///example.com',
  'https:\\\\example.com',
  'https://example.com\\@127.0.0.1/',
  ' https://example.com/',
  'https://example.com/ ',
  'ht\ntps://example.com/',
  'https://exam\tple.com/',
  'https://example.com/\u0000',
  'https://example.com/\u2028',
  '//example.com/',
  'example.com',
  '/path',
  'http://example.com/',
  'HTTP://example.com/',
  'ftp://example.com/',
  'file:///etc/passwd',
  'gopher://example.com/',
  'javascript:alert(1)',
  'data:text/plain,hi',
  'ws://example.com/',
  'wss://example.com/',
  'blob:https://example.com/',
  'https://user:pass@example.com/',
  'https://user@example.com/',
  'https://:pass@example.com/',
  'https://@example.com/',
  'https://:@example.com/',
  'https://example.com@127.0.0.1/',
  'https://127.0.0.1#@example.com/',
  'https://example.com:80/',
  'https://example.com:22/',
  'https://example.com:8443/',
  'https://example.com:6379/',
  'https://example.com:0/',
  'https://example.com:65536/',
  'https://example.com:-1/',
  'https://example.com:abc/',
  'https://[::1',
  'https://::1/',
  'https://[fe80::1%25eth0]/',
  'https://[fe80::1%eth0]/',
  'https://[::1]:443/',
  'https://[::ffff:127.0.0.1%25lo]/',
  'https://[v1.x]/',
  'https://256.256.256.256/',
  'https://1.2.3.4.5/',
  'https://0x100000000/',
  'https://4294967296/',
  'https://exa<mple.com/',
  'https://exa%00mple.com/',
  'https://xn--/',
  `https://example.com/${'a'.repeat(2048)}`,
];

const refused = [
  ...new Set([
    ...wholeUrls,
    ...[...numericSpellings, ...v4InV6, ...names, ...blocks, ...registryEntries].map((host) => `https://${host}/`),
  ]),
];

test('the table holds well over 120 spellings', () => {
  expect(refused.length).toBeGreaterThan(200);
});

describe('refused on save and on send, with one message for the tenant', () => {
  const policy = URLPolicy();
  const asked: string[] = [];
  const transport = httpTransport({
    policy,
    resolve: async (hostname) => {
      asked.push(hostname);
      return [];
    },
  });
  test.each(refused.map((url) => [url]))('%j', async (url) => {
    expect(policy.checkUrl(url)).toMatchObject({ ok: false });
    expect(await transport.send({ url, headers: {}, body: '{}' })).toMatchObject({
      kind: 'failure',
      reason: 'blocked_address',
      error: URL_NOT_ALLOWED,
    });
    expect(asked).toEqual([]);
  });
});

test.each([undefined, null, 7, {}, ['https://example.com/'], new URL('https://example.com/')])(
  'a value that is not a string is refused: %j',
  (value) => {
    expect(URLPolicy().checkUrl(value)).toMatchObject({ ok: false });
  },
);

test.each([
  ['https://example.com', { hostname: 'example.com', port: 443, origin: 'https://example.com', path: '/' }],
  ['https://Example.COM/Hooks?a=b#c', { hostname: 'example.com', path: '/Hooks?a=b' }],
  ['HTTPS://example.com:443/', { origin: 'https://example.com', port: 443 }],
  ['https://hooks.example.co.uk/a/b', { hostname: 'hooks.example.co.uk' }],
  ['https://my_team.example.com/', { hostname: 'my_team.example.com' }],
  ['https://münchen.example/größe', { hostname: 'xn--mnchen-3ya.example', path: '/gr%C3%B6%C3%9Fe' }],
  ['https://8.8.8.8/', { hostname: '8.8.8.8' }],
  ['https://134744072/', { hostname: '8.8.8.8' }],
  ['https://[2a00:1450:4001:829::200e]/', { hostname: '2a00:1450:4001:829::200e', origin: 'https://[2a00:1450:4001:829::200e]' }],
  ['https://127.0.0.1.example.com/', { hostname: '127.0.0.1.example.com' }],
  ['https://localhost.example.com/', { hostname: 'localhost.example.com' }],
  ['https://example.com/@user', { path: '/@user' }],
  ['https://example.com/?next=http://127.0.0.1/', { hostname: 'example.com' }],
])('%s is allowed', (url, expected) => {
  expect(URLPolicy().checkUrl(url)).toMatchObject({ ok: true, protocol: 'https:', ...expected });
});

test('ordinary public addresses are in no special block', () => {
  for (const text of [
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '169.253.255.255',
  ]) {
    expect(specialBlock(parseAddress(text) ?? { family: 4, bits: 0n })).toBeNull();
  }
  for (const text of [
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
  ]) {
    expect(specialBlock(parseAddress(text) ?? { family: 4, bits: 0n })).toBeNull();
  }
  for (const text of [
    '2001:200::1',
    '2001:4860:4860::8888',
    '2003::',
    '2606:4700::1111',
    '2620:4f:8001::',
    '3ffe:ffff::1',
    '2a00:1450::5eff:7f00:1',
  ]) {
    expect(specialBlock(parseAddress(text) ?? { family: 6, bits: 0n })).toBeNull();
  }
});

test.each([
  [{ alowHttp: true }, 'unknown option "alowHttp". Did you mean "allowHttp"?'],
  [{ allowPorts: [70_000] }, 'allowPorts[0] is 70000'],
  [{ allowPorts: 8443 }, 'allowPorts is 8443'],
])('options that are written wrong are refused: %o', (options, message) => {
  expect(() => URLPolicy(options as never)).toThrow(message);
});

describe('relaxations', () => {
  const allows = (policy: URLPolicy, url: string): boolean => policy.checkUrl(url).ok;

  test('allowHttp permits http on port 80 and nothing else', () => {
    const policy = URLPolicy({ allowHttp: true });
    expect(allows(policy, 'http://example.com/')).toBe(true);
    expect(allows(policy, 'https://example.com/')).toBe(true);
    expect(allows(policy, 'http://example.com:8080/')).toBe(false);
    expect(allows(policy, 'http://127.0.0.1/')).toBe(false);
    expect(allows(policy, 'http://localhost/')).toBe(false);
  });

  test('allowPrivateNetworks permits every address, local names and any port, but not http or user info', () => {
    const policy = URLPolicy({ allowPrivateNetworks: true });
    for (const url of [
      'https://127.0.0.1:8080/',
      'https://[::1]/',
      'https://localhost:3000/',
      'https://db:1/',
      'https://169.254.169.254/',
      'https://10.0.0.1/',
    ]) {
      expect(allows(policy, url)).toBe(true);
    }
    expect(allows(policy, 'http://127.0.0.1/')).toBe(false);
    expect(allows(policy, 'https://user@127.0.0.1/')).toBe(false);
    expect(allows(URLPolicy({ allowPrivateNetworks: true, allowPorts: [8443] }), 'https://localhost:3000/')).toBe(false);
  });

  test('the development policy of the guide accepts a loopback receiver', () => {
    expect(allows(URLPolicy({ allowHttp: true, allowPrivateNetworks: true }), 'http://localhost:4000/hooks')).toBe(true);
  });

  test('allowCidrs permits its addresses only, and never metadata', () => {
    const policy = URLPolicy({ allowCidrs: ['10.20.0.0/16', 'fd00::/8', '169.254.0.0/16'] });
    expect(allows(policy, 'https://10.20.1.2/')).toBe(true);
    expect(allows(policy, 'https://10.21.1.2/')).toBe(false);
    expect(allows(policy, 'https://[fd12::1]/')).toBe(true);
    expect(allows(policy, 'https://169.254.1.1/')).toBe(true);
    for (const url of ['https://169.254.169.254/', 'https://[fd00:ec2::254]/', 'https://169.254.170.2/'])
      expect(allows(policy, url)).toBe(false);
    expect(allows(policy, 'https://[::ffff:10.20.1.2]/')).toBe(false);
    expect(allows(policy, 'https://localhost/')).toBe(false);
  });

  test('an allowed NAT64 prefix still refuses the private addresses behind it', () => {
    const policy = URLPolicy({ allowCidrs: ['64:ff9b::/96', '64:ff9b:1::/48'] });
    expect(allows(policy, 'https://[64:ff9b::8.8.8.8]/')).toBe(true);
    expect(allows(policy, 'https://[64:ff9b:1::8.8.8.8]/')).toBe(true);
    for (const inner of ['127.0.0.1', '10.0.0.1', '169.254.169.254', '168.63.129.16']) {
      expect(allows(policy, `https://[64:ff9b::${inner}]/`)).toBe(false);
      expect(allows(policy, `https://[64:ff9b:1::${inner}]/`)).toBe(false);
    }
  });

  test('allowPorts adds ports', () => {
    const policy = URLPolicy({ allowPorts: [8443] });
    expect(allows(policy, 'https://example.com:8443/')).toBe(true);
    expect(allows(policy, 'https://example.com/')).toBe(true);
    expect(allows(policy, 'https://example.com:9443/')).toBe(false);
  });

  test('allowHosts permits a name and whatever it resolves to, except metadata', () => {
    const policy = URLPolicy({ allowHosts: ['Hooks.Corp.internal', 'receiver'] });
    expect(allows(policy, 'https://hooks.corp.internal/')).toBe(true);
    expect(allows(policy, 'https://receiver/')).toBe(true);
    expect(allows(policy, 'https://other.corp.internal/')).toBe(false);
    expect(policy.refuseAddress('10.0.0.1', 'hooks.corp.internal')).toBeNull();
    expect(policy.refuseAddress('10.0.0.1', 'other.example.com')).not.toBeNull();
    for (const address of ['169.254.169.254', 'fd00:ec2::254', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe']) {
      expect(policy.refuseAddress(address, 'hooks.corp.internal')).not.toBeNull();
    }
  });

  test.each(['10.0.0.0/33', '10.0.0/8', 'fd00::/129', 'example.com', '10.0.0.0/', '10.0.0.0/8/8', '', '::/x'])(
    'the block %j is refused at once',
    (cidr) => {
      expect(() => URLPolicy({ allowCidrs: [cidr] })).toThrow(TypeError);
    },
  );
});

test.each(['', 'localhost', '127.1', '1.2.3', 'fe80::1%eth0', '[::1]', '127.0.0.1 ', 'x'])(
  'a resolver that answers %j is not trusted',
  (answer) => {
    expect(URLPolicy().refuseAddress(answer, 'example.com')).not.toBeNull();
  },
);
