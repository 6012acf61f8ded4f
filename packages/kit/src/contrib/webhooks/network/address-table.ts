// Addresses a webhook must not be sent to. Fixed tables: an SSRF guard that downloads its rules can be starved of them.

/** State of the IANA registries the tables describe: the special-purpose registries of 2024-10-22 and RFC 9780 of May 2025. */
export const ADDRESS_TABLE_DATE = '2025-05-31';

export interface AddressBlock {
  readonly cidr: string;
  readonly name: string;
}

const block = (cidr: string, name: string): AddressBlock => ({ cidr, name });

/** The whole IANA IPv4 special-purpose registry, also the entries marked globally reachable, and multicast. */
export const SPECIAL_V4: readonly AddressBlock[] = [
  block('0.0.0.0/8', 'this network (RFC 791)'),
  block('10.0.0.0/8', 'private use (RFC 1918)'),
  block('100.64.0.0/10', 'shared address space (RFC 6598)'),
  block('127.0.0.0/8', 'loopback (RFC 1122)'),
  block('169.254.0.0/16', 'link local (RFC 3927)'),
  block('172.16.0.0/12', 'private use (RFC 1918)'),
  // Covers the registry's entries inside it: 192.0.0.0/29, 192.0.0.8/32, .9/32, .10/32, .170/32 and .171/32.
  block('192.0.0.0/24', 'IETF protocol assignments (RFC 6890)'),
  block('192.0.2.0/24', 'documentation, TEST-NET-1 (RFC 5737)'),
  block('192.31.196.0/24', 'AS112-v4 (RFC 7535)'),
  block('192.52.193.0/24', 'AMT (RFC 7450)'),
  block('192.88.99.0/24', '6to4 relay anycast, deprecated (RFC 7526)'),
  block('192.168.0.0/16', 'private use (RFC 1918)'),
  block('192.175.48.0/24', 'direct delegation AS112 (RFC 7534)'),
  block('198.18.0.0/15', 'benchmarking (RFC 2544)'),
  block('198.51.100.0/24', 'documentation, TEST-NET-2 (RFC 5737)'),
  block('203.0.113.0/24', 'documentation, TEST-NET-3 (RFC 5737)'),
  block('224.0.0.0/4', 'multicast (RFC 5771)'),
  block('240.0.0.0/4', 'reserved and limited broadcast (RFC 1112, RFC 8190)'),
];

/**
 * The whole IANA IPv6 special-purpose registry and multicast, site-local and the rest of the space outside 2000::/3,
 * the only part IANA allocates as global unicast.
 */
export const SPECIAL_V6: readonly AddressBlock[] = [
  block('::1/128', 'loopback (RFC 4291)'),
  block('::/128', 'unspecified (RFC 4291)'),
  block('100::/64', 'discard only (RFC 6666)'),
  block('100:0:0:1::/64', 'dummy prefix (RFC 9780)'),
  // Covers the registry's entries inside it: 2001::/32, 2001:1::1 to ::3, 2001:2::/48, 2001:3::/32, 2001:4:112::/48,
  // 2001:10::/28, 2001:20::/28 and 2001:30::/28.
  block('2001::/23', 'IETF protocol assignments (RFC 2928)'),
  block('2001:db8::/32', 'documentation (RFC 3849)'),
  block('2620:4f:8000::/48', 'direct delegation AS112 (RFC 7534)'),
  block('3fff::/20', 'documentation (RFC 9637)'),
  block('5f00::/16', 'segment routing SIDs (RFC 9602)'),
  block('fc00::/7', 'unique local (RFC 4193)'),
  block('fe80::/10', 'link local (RFC 4291)'),
  block('fec0::/10', 'site local, deprecated (RFC 3879)'),
  block('ff00::/8', 'multicast (RFC 4291)'),
  block('::/3', 'outside global unicast'),
  block('4000::/2', 'outside global unicast'),
  block('8000::/1', 'outside global unicast'),
];

/** Where clouds answer an instance's questions about itself, credentials included. Some lie in ordinary public space. */
export const METADATA: readonly AddressBlock[] = [
  block('169.254.169.254/32', 'metadata of AWS, Azure, Google Cloud, DigitalOcean, Oracle, OpenStack'),
  block('169.254.169.253/32', 'AWS resolver'),
  block('169.254.169.123/32', 'AWS time'),
  block('169.254.170.2/32', 'AWS ECS task credentials'),
  block('169.254.170.23/32', 'AWS EKS pod identity'),
  block('169.254.42.42/32', 'Scaleway metadata'),
  block('100.100.100.200/32', 'Alibaba Cloud metadata'),
  block('168.63.129.16/32', 'Azure wire server'),
  block('192.0.0.192/32', 'Oracle Cloud classic metadata'),
  block('fd00:ec2::254/128', 'AWS metadata'),
  block('fd00:ec2::253/128', 'AWS resolver'),
  block('fd00:ec2::23/128', 'AWS EKS pod identity'),
  block('fd20:ce::254/128', 'Google Cloud metadata'),
  block('fd00:42::42/128', 'Scaleway metadata'),
  block('fe80::a9fe:a9fe/128', 'OpenStack metadata'),
];

/** Prefixes whose addresses carry an IPv4 address, and the bit at which it begins. */
export interface EmbeddedForm extends AddressBlock {
  readonly v4Bits: readonly number[];
  /** Teredo stores the client's address inverted. */
  readonly inverted?: number;
}

const form = (cidr: string, name: string, v4Bits: readonly number[], inverted?: number): EmbeddedForm =>
  inverted === undefined ? { cidr, name, v4Bits } : { cidr, name, v4Bits, inverted };

/** ISATAP is the one form outside this table: it is told by the interface identifier, in any prefix. */
export const EMBEDDED_V4: readonly EmbeddedForm[] = [
  form('::ffff:0:0/96', 'IPv4-mapped (RFC 4291)', [96]),
  form('::ffff:0:0:0/96', 'IPv4-translated (RFC 2765)', [96]),
  form('64:ff9b::/96', 'NAT64 (RFC 6052)', [96]),
  // Below the local prefix RFC 6052 permits other layouts too; the usual one (a /96) is read. It matters only where an
  // operator has allowed the prefix: without that every address of the form is refused.
  form('64:ff9b:1::/48', 'local NAT64 (RFC 8215)', [96]),
  form('2002::/16', '6to4 (RFC 3056)', [16]),
  form('2001::/32', 'Teredo (RFC 4380)', [32], 96),
  form('::/96', 'IPv4-compatible, deprecated (RFC 4291)', [96]),
];
