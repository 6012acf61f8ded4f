import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { allowAny, Controller, coreErrors, raw, route, type CompiledRoute } from 'kit';
import { generateClient } from 'kit/openapi';
import { z } from 'zod';

/** Nothing may run but the page's own scripts, and nothing may be loaded from anywhere else. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS = { 'content-security-policy': POLICY, 'x-content-type-options': 'nosniff', 'cache-control': 'no-cache' };

const file = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8');
const facts = { permission: allowAny, auth: [], hidden: true };

/** A page for customers that calls the API with its generated client. `routes` are those of the app the page belongs to. */
export class ShopController extends Controller {
  readonly #files = new Map([
    ['shop.js', ['text/javascript', file('shop.js')]],
    ['shop.css', ['text/css', file('shop.css')]],
  ]);
  readonly #page = file('shop.html');
  readonly #routes: () => readonly CompiledRoute[];

  constructor(routes: () => readonly CompiledRoute[]) {
    super();
    this.#routes = routes;
  }

  page = route.get('/', { ...facts, response: raw('text/html; charset=utf-8') }, ({ reply }) => {
    reply.headers(HEADERS);
    return this.#page;
  });

  asset = route.get(
    '/:name',
    { ...facts, params: z.object({ name: z.string() }), response: raw('text/javascript; charset=utf-8') },
    ({ params, reply }) => {
      if (params.name === 'api.js' && !this.#files.has('api.js')) this.#files.set('api.js', ['text/javascript', this.#client()]);
      const [type, text] = this.#files.get(params.name) ?? [];
      if (text === undefined) throw coreErrors.not_found();
      reply.headers({ ...HEADERS, 'content-type': `${type}; charset=utf-8` });
      return text;
    },
  );

  /** The client as a browser takes it, without a bundler: the types are removed. */
  #client(): string {
    return stripTypeScriptTypes(
      generateClient(this.#routes(), { language: 'typescript', title: 'Orders', version: '1.0.0', mount: '/v1' }),
    );
  }
}
