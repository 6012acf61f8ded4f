import { serverToml } from './served-folder.ts';

const sections = [
  { application: 'billing', profile: 'production', files: ['billing.toml'] },
  { application: 'orders', profile: 'production', files: ['orders.toml'] },
  { application: 'ledger', profile: 'development', files: ['ledger.toml'] },
  { application: 'ledger', profile: 'production', files: ['ledger.toml'] },
];
/** Files of a server that hides sections from the caller of billing, who may read billing and ledger/development. */
export const HIDING_FILES: Readonly<Record<string, string>> = {
  'billing.toml': '[billing]\na = 1\n',
  'orders.toml': `[orders]\nlarge = "${'x'.repeat(200_000)}"\n`,
  'ledger.toml': `[ledger]\nlarge = "${'x'.repeat(200_000)}"\n`,
  'server.toml': serverToml(sections).replace('["billing"]', '["billing", "ledger/development"]'),
};

/** All of these must look the same to the caller of billing. */
export const HIDDEN: Readonly<Record<string, string>> = {
  ungranted: '/orders/production',
  'ungranted profile of a granted application': '/ledger/production',
  'unknown profile of an ungranted application': '/orders/nowhere',
  'unknown application': '/absent/production',
  'unknown profile': '/billing/nowhere',
  malformed: '/%2e%2e/production',
  undecodable: '/%ff%fe/production',
  'too long': `/${'a'.repeat(65)}/production`,
};
