// A real OpenID provider in its own process: `node serve-oidc.ts`, prints its address. Started by oidc-provider.slow.test.ts.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';

interface OidcProvider {
  callback(): Parameters<typeof createServer>[1];
}

// The package has no types of its own.
const name: string = 'oidc-provider';
const { default: Provider } = (await import(name)) as { default: new (issuer: string, options: object) => OidcProvider };

const { privateKey } = await generateKeyPair('ES256', { extractable: true });
const key = { ...(await exportJWK(privateKey)), kid: 'oidc-1', alg: 'ES256', use: 'sig' };
let serve: Parameters<typeof createServer>[1];
const server = createServer((request, response) => serve?.(request, response));
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    clients: ['orders-job', 'other-job'].map((client_id) => ({
      client_id,
      client_secret: 'a secret of the test',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
      id_token_signed_response_alg: 'ES256',
    })),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: 'orders:read orders:write',
          audience: new URL(resource).hostname.split('.')[0],
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  });
  serve = provider.callback();
  process.stdout.write(`${issuer}\n`);
});
