import { URLPolicy } from '../../src/contrib/webhooks/network/url-policy.ts';

/** Receivers of tests are on this machine. */
export const LOOPBACK = URLPolicy({ allowHttp: true, allowPrivateNetworks: true });
