import { sample } from '../../src/testing/sample/sample.ts';
import type { Random } from '../../src/testing/sample/random.ts';
import type { OpenApiDocument } from '../../src/openapi/document.ts';
import { HOSTILE_QUERIES, HOSTILE_TEXTS, HOSTILE_VALUES, mutateText, mutateValue } from './mutate.ts';

type Json = Readonly<Record<string, unknown>>;

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Json;
}

/** One operation as its own document describes it. */
export interface FuzzTarget {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: Json | undefined;
  /** Codes the document promises, by status. */
  readonly codes: ReadonlyMap<number, readonly string[]>;
  readonly success: number;
}

export interface FuzzRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly payload: Buffer | undefined;
  /** Its own for every request: what limits how often one address asks has its own tests. */
  readonly remoteAddress: string;
  /** Everything in it satisfies the document: then only the state of the server may refuse it. */
  readonly isValid: boolean;
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Json }>> };
  readonly responses: Readonly<Record<string, { readonly 'x-error-codes'?: readonly string[] }>>;
}

export function targetsOf(document: OpenApiDocument): FuzzTarget[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, value]): FuzzTarget => {
      const operation = value as Operation;
      return {
        operationId: operation.operationId,
        method: method.toUpperCase(),
        path,
        parameters: operation.parameters ?? [],
        body: operation.requestBody?.content['application/json']?.schema,
        codes: new Map(
          Object.entries(operation.responses).flatMap(([status, response]) =>
            response['x-error-codes'] === undefined ? [] : [[Number(status), response['x-error-codes']]],
          ),
        ),
        success: Number(Object.keys(operation.responses).find((status) => status.startsWith('2'))),
      };
    }),
  );
}

/** References of the document resolve inside it, so its components travel with every schema. */
const complete = (schema: Json, document: OpenApiDocument): Json => ({ ...schema, components: document.components });

let requests = 0;

function nextAddress(): string {
  requests += 1;
  return `10.${(requests >> 16) & 255}.${(requests >> 8) & 255}.${requests & 255}`;
}

/** `known` are keys of rows that exist: half of the requests about one row are about a real one. */
export function planRequest(target: FuzzTarget, document: OpenApiDocument, random: Random, known: readonly string[]): FuzzRequest {
  const seed = random.int(1, 1_000_000);
  const hostile = { place: random.chance(0.5) ? random.pick(['path', 'query', 'header', 'body', 'body', 'text', 'type']) : 'none' };
  const draw = (schema: Json): unknown => sample(complete(schema, document), { seed, optional: 'some' });
  const textOf = (parameter: Parameter): string => {
    const [first = ''] = [draw(parameter.schema)].flat();
    return typeof first === 'string' ? first : JSON.stringify(first);
  };
  let isValid = hostile.place === 'none';

  const inPath = target.parameters.filter((parameter) => parameter.in === 'path');
  const url = inPath.reduce((path, parameter) => {
    const existing = parameter.name === 'id' && known.length > 0 && random.chance(0.5) ? random.pick(known) : undefined;
    const value = hostile.place === 'path' ? random.pick(HOSTILE_TEXTS) : (existing ?? encodeURIComponent(textOf(parameter)));
    return path.replace(`{${parameter.name}}`, value);
  }, target.path);
  const given = target.parameters.filter((parameter) => parameter.in === 'query' && (parameter.required === true || random.chance(0.4)));
  const query =
    hostile.place === 'query'
      ? random.pick(HOSTILE_QUERIES)
      : given.map((parameter) => `${parameter.name}=${encodeURIComponent(textOf(parameter))}`).join('&');

  const headers: Record<string, string> = {};
  if (random.chance(0.1)) headers['cookie'] = random.pick(['__Host-kit_session=x', 'kit_session=%ff; =; a', ';;;', 'kit_session=']);
  if (random.chance(0.8)) headers['x-test-user'] = random.pick(['writer', 'reader', 'somebody']);
  for (const parameter of target.parameters)
    if (parameter.in === 'header' && random.chance(0.5)) headers[parameter.name] = textOf(parameter);
  if (hostile.place === 'header')
    Object.assign(headers, {
      'x-test-user': 'BAD value',
      'x-request-id': 'a b\u00e9',
      'x-factor': random.pick(['0', 'x', '']),
      accept: random.pick(['', '*/*;q=', 'text/nothing']),
    });

  let payload: Buffer | undefined;
  if (target.body !== undefined) {
    const value = draw(target.body);
    payload = Buffer.from(JSON.stringify(hostile.place === 'body' ? mutateValue(value, random) : value));
    if (hostile.place === 'text') payload = mutateText(payload.toString(), random);
    headers['content-type'] =
      hostile.place === 'type'
        ? random.pick(['text/plain', 'application/xml', 'application/json; charset=latin1', 'json', '', 'multipart/form-data'])
        : 'application/json';
  } else if (hostile.place === 'body' || hostile.place === 'text') {
    payload = Buffer.from(JSON.stringify(random.pick(HOSTILE_VALUES)));
    headers['content-type'] = 'application/json';
  } else isValid ||= hostile.place === 'type';
  if (inPath.length === 0 && hostile.place === 'path') isValid = true;
  return { method: target.method, url: query === '' ? url : `${url}?${query}`, headers, payload, remoteAddress: nextAddress(), isValid };
}
