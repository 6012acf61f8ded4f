import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose';

export type Claims = Readonly<Record<string, unknown>>;

export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

export async function newKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

/** An identity provider on loopback that can be down, slow, lying, and rotate its keys. It counts what it is asked. */
export class Provider {
  keys: SigningKey[] = [];
  /** Entries of the key set besides `keys`. */
  extraKeys: unknown[] = [];
  readonly asked: string[] = [];
  /** Answers instead of the usual. */
  behave: ((path: string, response: ServerResponse) => boolean) | null = null;
  #server: Server;
  url = '';

  constructor() {
    this.#server = createServer((request, response) => {
      const path = request.url ?? '';
      this.asked.push(path);
      if (this.behave?.(path, response) === true) return;
      response.setHeader('content-type', 'application/json');
      const body = this.#body(path);
      if (body === null) response.statusCode = 404;
      response.end(JSON.stringify(body ?? {}));
    });
  }

  #body(path: string): object | null {
    if (path === '/.well-known/openid-configuration') return { issuer: this.url, jwks_uri: `${this.url}/keys` };
    return path === '/keys' ? { keys: [...this.keys.map(({ jwk }) => jwk), ...this.extraKeys] } : null;
  }

  async start(): Promise<this> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    this.keys = [await newKey('first')];
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((done) => this.#server.close(() => done()));
  }

  down(): void {
    this.behave = (_path, response) => {
      response.socket?.destroy();
      return true;
    };
  }

  up(): void {
    this.behave = null;
  }

  get #key(): SigningKey {
    const [key] = this.keys;
    if (key === undefined) throw new Error('The provider has no key.');
    return key;
  }

  /** An access token as providers issue them; `claims` and `header` replace members, `undefined` removes one. */
  token(
    now: Date,
    claims: Claims = {},
    { key = this.#key, header = {} }: { readonly key?: SigningKey; readonly header?: Record<string, unknown> } = {},
  ): Promise<string> {
    const seconds = Math.floor(now.getTime() / 1000);
    const all = { iss: this.url, aud: 'orders', sub: 'alice-1', iat: seconds, exp: seconds + 300, ...claims };
    const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    return new SignJWT(present).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.privateKey);
  }
}
