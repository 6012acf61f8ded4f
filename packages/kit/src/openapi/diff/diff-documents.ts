import { codesAnywhere, errorCodesOf } from '../error-codes.ts';
import { isMembers } from '../../options/value-rule.ts';
import { SchemaComparison } from './compare-schemas.ts';
import { compareSchemes, compareSecurity } from './compare-security.ts';
import { compareThrottles } from './compare-throttles.ts';
import { FlatSchemas, followed, type Json } from './flat-schema.ts';
import type { DocumentChange, Report } from './document-change.ts';
import { diffRules, type Direction } from './rules.ts';

export interface DiffOptions {
  /** Removals after the announced sunset date do not break callers. Default: the current time. */
  readonly now?: Date | undefined;
}

const METHODS = ['get', 'head', 'options', 'trace', 'query', 'post', 'put', 'patch', 'delete'];

/** Compares two OpenAPI documents, the older one first. No network: both are given. */
export function diffDocuments(base: Json, revision: Json, { now = new Date() }: DiffOptions = {}): DocumentChange[] {
  return new DocumentComparison(base, revision, now).changes();
}

interface Operation {
  readonly path: string;
  readonly item: Json;
  readonly operation: Json;
}

class DocumentComparison {
  readonly #base: Json;
  readonly #revision: Json;
  readonly #now: Date;
  readonly #schemas: Readonly<Record<Direction, SchemaComparison>>;
  readonly #changes: DocumentChange[] = [];

  constructor(base: Json, revision: Json, now: Date) {
    [this.#base, this.#revision, this.#now] = [base, revision, now];
    const [before, after] = [new FlatSchemas(base), new FlatSchemas(revision)];
    this.#schemas = { input: new SchemaComparison('input', before, after), output: new SchemaComparison('output', before, after) };
  }

  changes(): DocumentChange[] {
    const document = this.#reportOf('document');
    compareServers(this.#base, this.#revision, document);
    compareSchemes(this.#base, this.#revision, document);
    const [before, after] = [operationsOf(this.#base), operationsOf(this.#revision)];
    for (const [key, old] of before) {
      const report = this.#reportOf(`${key.split(' ')[0]} ${old.path}`);
      const current = after.get(key);
      if (current === undefined) this.#removed(old.operation, 'operation', '', report);
      else this.#compareOperations(old, current, report);
    }
    for (const [key, { path }] of after)
      if (!before.has(key)) this.#reportOf(`${key.split(' ')[0]} ${path}`)('operation-added', '', 'is new.');
    this.#compareWebhooks();
    return this.#changes;
  }

  #reportOf(operation: string): Report {
    return (id, place, message, component) =>
      void this.#changes.push({
        id,
        level: diffRules[id].level,
        operation,
        place,
        ...(component === undefined ? {} : { component }),
        message,
      });
  }

  /** What was announced to end may be removed when its time has come. */
  #removed(old: Json, kind: 'operation' | 'parameter', place: string, report: Report): void {
    const sunset = old['deprecated'] === true ? sunsetOf(old) : undefined;
    if (sunset === undefined) {
      const hint = old['deprecated'] === true ? ' It was deprecated without a sunset date.' : '';
      return report(`${kind}-removed`, place, `was removed.${hint}`);
    }
    const date = sunset.toISOString().slice(0, 10);
    if (sunset <= this.#now) return report(`${kind}-removed-after-sunset`, place, `was removed; its sunset date was ${date}.`);
    report(kind === 'operation' ? 'operation-removed-early' : 'parameter-removed', place, `was removed before its sunset date ${date}.`);
  }

  #compareOperations(old: Operation, current: Operation, report: Report): void {
    const [before, after] = [old.operation, current.operation];
    if (before['operationId'] !== after['operationId'])
      report('operation-id-changed', '', `is ${String(after['operationId'])} now, was ${String(before['operationId'])}.`);
    this.#compareDeprecation(before, after, report);
    compareEndEvents(before, after, report);
    compareSecurity({ document: this.#base, operation: before }, { document: this.#revision, operation: after }, report);
    compareThrottles(throttlesOf(before, this.#base), throttlesOf(after, this.#revision), report);
    this.#compareParameters(old, current, report);
    this.#compareBodies(before, after, report);
    this.#compareResponses(before, after, report);
  }

  #compareDeprecation(before: Json, after: Json, report: Report): void {
    const [was, is] = [before['deprecated'] === true, after['deprecated'] === true];
    if (!was && is) return report('operation-deprecated', '', 'is deprecated.');
    if (was && !is) return report('operation-undeprecated', '', 'is no longer deprecated.');
    const [old, current] = [sunsetOf(before), sunsetOf(after)];
    if (!was || old?.getTime() === current?.getTime()) return;
    const [said, says] = [old, current].map((date) => date?.toISOString().slice(0, 10) ?? 'none');
    const isEarlier = current !== undefined && (old === undefined || current < old);
    report(isEarlier ? 'sunset-earlier' : 'sunset-later', 'sunset', `is ${says}, was ${said}.`);
  }

  #parametersOf({ path, item, operation }: Operation, document: Json): Map<string, Json> {
    const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]);
    const found = new Map<string, Json>();
    for (const list of [item['parameters'], operation['parameters']])
      for (const each of Array.isArray(list) ? list : []) {
        const parameter = followed(each, document);
        const [place, name] = [String(parameter['in']), String(parameter['name'])];
        // A path parameter is known by its position, a header by its name in any case.
        const key =
          place === 'path' ? `path ${inPath.indexOf(name)}` : place === 'header' ? `header ${name.toLowerCase()}` : `${place} ${name}`;
        found.set(key, parameter);
      }
    return found;
  }

  #compareParameters(before: Operation, after: Operation, report: Report): void {
    const [old, current] = [this.#parametersOf(before, this.#base), this.#parametersOf(after, this.#revision)];
    const label = ({ in: place, name }: Json) => `${String(place)} ${String(name)}`;
    for (const [key, parameter] of old) {
      const now = current.get(key);
      if (now === undefined) {
        this.#removed(parameter, 'parameter', label(parameter), report);
        continue;
      }
      const at = label(now);
      if (parameter['in'] === 'path' && parameter['name'] !== now['name'])
        report('path-parameter-renamed', at, `was ${String(parameter['name'])}.`);
      if (parameter['required'] !== true && now['required'] === true) report('parameter-became-required', at, 'is required now.');
      if (parameter['required'] === true && now['required'] !== true) report('parameter-became-optional', at, 'is optional now.');
      if (parameter['deprecated'] !== true && now['deprecated'] === true) report('parameter-deprecated', at, 'is deprecated.');
      if (!isMembers(now['content']) && styleOf(parameter) !== styleOf(now))
        report('parameter-style-changed', at, `is written as ${styleOf(now)}, was ${styleOf(parameter)}.`);
      if (isMembers(parameter['content']) !== isMembers(now['content'])) {
        const [told, tells] = [parameter, now].map((each) => Object.keys(contentOf(each))[0] ?? styleOf(each));
        report('parameter-style-changed', at, `is written as ${tells}, was ${told}.`);
        continue;
      }
      const asText = isWrittenAsText(parameter['schema'], now['schema'], this.#base, this.#revision);
      this.#schemasOf('input', parameter['schema'], asText ? parameter['schema'] : now['schema'], at, report);
      if (asText) report('input-type-widened', at, 'can be any string now.');
      this.#compareContent('input', contentOf(parameter), contentOf(now), at, report);
    }
    for (const [key, parameter] of current)
      if (!old.has(key))
        report(parameter['required'] === true ? 'required-parameter-added' : 'parameter-added', label(parameter), 'is new.');
  }

  /** Places inside a schema are reported below what they belong to. */
  #schemasOf(direction: Direction, before: unknown, after: unknown, at: string, report: Report, ignored?: string): void {
    if (before === undefined && after === undefined) return;
    for (const { id, place, message, component } of this.#schemas[direction].compare(before, after))
      if (place !== ignored) report(id, place === '' ? at : `${at} ${place}`, message, component);
  }

  #compareContent(direction: Direction, before: Json, after: Json, at: string, report: Report, ignored?: string): void {
    for (const [type, media] of Object.entries(before)) {
      const now = after[type];
      if (!isMembers(now)) report(`${direction}-media-type-removed`, `${at} ${type}`, 'was removed.');
      else if (isMembers(media)) {
        const several = Object.keys(before).length > 1 ? `${at} ${type}` : at;
        this.#schemasOf(direction, media['schema'], now['schema'], several, report, ignored);
        // The events of a stream: `itemSchema` since 3.2.
        const item = (holder: Json) => holder['itemSchema'] ?? holder['x-item-schema'];
        this.#schemasOf(direction, item(media), item(now), `${several} event`, report);
      }
    }
    for (const type of Object.keys(after)) if (!(type in before)) report(`${direction}-media-type-added`, `${at} ${type}`, 'is new.');
  }

  #compareBodies(before: Json, after: Json, report: Report): void {
    const [had, has] = [isMembers(before['requestBody']), isMembers(after['requestBody'])];
    const [old, current] = [followed(before['requestBody'], this.#base), followed(after['requestBody'], this.#revision)];
    if (had && !has) report('body-removed', 'body', 'is not accepted any more.');
    else if (!had && has)
      report(
        current['required'] === true ? 'body-added' : 'optional-body-added',
        'body',
        current['required'] === true ? 'is required.' : 'is new.',
      );
    if (!had || !has) return;
    if (old['required'] !== true && current['required'] === true) report('body-became-required', 'body', 'is required now.');
    if (old['required'] === true && current['required'] !== true) report('body-became-optional', 'body', 'is optional now.');
    this.#compareContent('input', contentOf(old), contentOf(current), 'body', report);
  }

  #compareResponses(before: Json, after: Json, report: Report): void {
    const [old, current] = [responsesOf(before, this.#base), responsesOf(after, this.#revision)];
    const isSuccess = (status: string) => /^[123]/.test(status);
    const [anywhere, anywhereNow] = [codesAnywhere(this.#base), codesAnywhere(this.#revision)];
    const hasCodes = (response: Json, known = anywhere) => (errorCodesOf(response, known) ?? []).length > 0;
    for (const [status, response] of old) {
      const now = current.get(status);
      if (now === undefined) {
        if (isSuccess(status)) report('response-removed', status, 'was removed.');
        else if (!hasCodes(response)) report('error-status-removed', status, 'was removed.');
        continue;
      }
      // New codes are reported as codes, not as values of `code`.
      const ignored = hasCodes(response) && hasCodes(now, anywhereNow) ? 'code' : undefined;
      this.#compareContent('output', contentOf(response), contentOf(now), status, report, ignored);
      this.#compareHeaders(response, now, status, report);
    }
    for (const [status, response] of current) {
      if (old.has(status)) continue;
      if (isSuccess(status)) report('response-added', status, 'is new.');
      else if (!hasCodes(response)) report('error-status-added', status, 'is new.');
    }
    compareCodes({ responses: old, anywhere }, { responses: current, anywhere: anywhereNow }, report);
  }

  #compareHeaders(before: Json, after: Json, status: string, report: Report): void {
    const headersOf = ({ headers }: Json, document: Json) =>
      new Map(
        Object.entries(isMembers(headers) ? headers : {}).map(([name, header]) => [
          name.toLowerCase(),
          [name, followed(header, document)] as const,
        ]),
      );
    const [old, current] = [headersOf(before, this.#base), headersOf(after, this.#revision)];
    for (const [key, [name, header]] of old) {
      const now = current.get(key)?.[1];
      const at = `${status} ${name}`;
      if (now === undefined) {
        report('response-header-removed', at, 'was removed.');
        continue;
      }
      if (header['required'] === true && now['required'] !== true) report('response-header-optional', at, 'may be missing now.');
      if (header['required'] !== true && now['required'] === true) report('response-header-required', at, 'is always sent now.');
      this.#schemasOf('output', header['schema'], now['schema'], at, report);
    }
    for (const [key, [name]] of current) if (!old.has(key)) report('response-header-added', `${status} ${name}`, 'is new.');
  }

  /** Events go the other way: their bodies and headers are what the application sends. */
  #compareWebhooks(): void {
    const [before, after] = [webhooksOf(this.#base), webhooksOf(this.#revision)];
    for (const [name, old] of before) {
      const report = this.#reportOf(`webhook ${name}`);
      const current = after.get(name);
      if (current === undefined) report('webhook-removed', '', 'was removed.');
      else {
        const body = (operation: Json, document: Json) => contentOf(followed(operation['requestBody'], document));
        this.#compareContent('output', body(old, this.#base), body(current, this.#revision), 'body', report);
      }
    }
    for (const name of after.keys()) if (!before.has(name)) this.#reportOf(`webhook ${name}`)('webhook-added', '', 'is new.');
  }
}

/** By method and path; the names of path parameters do not matter. */
function operationsOf(document: Json): Map<string, Operation> {
  const { paths } = document;
  const found = new Map<string, Operation>();
  for (const [path, given] of Object.entries(isMembers(paths) ? paths : {})) {
    const item = followed(given, document);
    for (const method of METHODS) {
      const operation = item[method];
      if (isMembers(operation)) found.set(`${method.toUpperCase()} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`, { path, item, operation });
    }
  }
  return found;
}

function webhooksOf(document: Json): Map<string, Json> {
  const { webhooks } = document;
  return new Map(
    Object.entries(isMembers(webhooks) ? webhooks : {}).flatMap(([name, item]) => {
      const operation = METHODS.map((method) => followed(item, document)[method]).find(isMembers);
      return operation === undefined ? [] : [[name, operation]];
    }),
  );
}

/** The event that a finite stream ends with. Another one is lost to clients that wait for the old one. */
function compareEndEvents(before: Json, after: Json, report: Report): void {
  const [old, current] = [before, after].map(({ 'x-end-event': name }) => (typeof name === 'string' ? name : undefined));
  if (old === current) return;
  if (old !== undefined) report('end-event-removed', old, 'is no longer sent at the end.');
  if (current !== undefined) report('end-event-added', current, 'is sent at the end.');
}

function compareServers(base: Json, revision: Json, report: Report): void {
  const urls = ({ servers }: Json) => new Set(Array.isArray(servers) ? servers.map((server) => String((server as Json)['url'])) : []);
  const [old, current] = [urls(base), urls(revision)];
  for (const url of old) if (!current.has(url)) report('server-removed', 'server', `${url} was removed.`);
  for (const url of current) if (!old.has(url)) report('server-added', 'server', `${url} is new.`);
}

function responsesOf(operation: Json, document: Json): Map<string, Json> {
  const { responses } = operation;
  return new Map(Object.entries(isMembers(responses) ? responses : {}).map(([status, each]) => [status, followed(each, document)]));
}

interface Documented {
  readonly responses: ReadonlyMap<string, Json>;
  readonly anywhere: ReadonlySet<string>;
}

function compareCodes(old: Documented, current: Documented, report: Report): void {
  const isAnywhere = (code: string) => old.anywhere.has(code) || current.anywhere.has(code);
  const codesOf = ({ responses, anywhere }: Documented) =>
    [...responses].flatMap(([status, response]) => {
      const codes = errorCodesOf(response, anywhere) ?? [];
      // Those of `default` are compared there; older documents repeat some of them.
      return codes.filter((code) => status === 'default' || !isAnywhere(code)).map((code) => ({ status, code, key: `${status} ${code}` }));
    });
  const [known, now] = [codesOf(old), codesOf(current)];
  const [knownKeys, nowKeys] = [new Set(known.map(({ key }) => key)), new Set(now.map(({ key }) => key))];
  const come = now.filter(({ key }) => !knownKeys.has(key));
  for (const { key, code, status } of known) {
    if (nowKeys.has(key)) continue;
    const moved = come.findIndex((each) => each.code === code);
    if (moved < 0) report('error-code-removed', key, 'was removed.');
    else report('error-code-moved', code, `has status ${come.splice(moved, 1)[0]?.status}, was ${status}.`);
  }
  for (const { key } of come) report('error-code-added', key, 'is new.');
}

/** Those of the operation, or of the document. An operation may name a limit of the document instead of repeating it. */
function throttlesOf(operation: Json, document: Json): Json {
  const { 'x-throttles': common } = document;
  const { 'x-throttles': own = common } = operation;
  const limits = Array.isArray(common) ? common.filter(isMembers) : [];
  return { 'x-throttles': Array.isArray(own) ? own.map((each: unknown) => limits.find(({ name }) => name === each) ?? each) : own };
}

function contentOf({ content }: Json): Json {
  return isMembers(content) ? content : {};
}

const ANY_TEXT = new Set(['type', 'description', 'title', 'example', 'examples', 'deprecated']);
const SCALARS = new Set(['integer', 'number', 'boolean']);

/** Each value of a parameter is sent as text: a number or a truth value is one of the strings that an unrestricted string admits. */
function isWrittenAsText(before: unknown, after: unknown, base: Json, revision: Json): boolean {
  const [old, now] = [followed(before, base), followed(after, revision)];
  const isAny = now['type'] === 'string' && Object.keys(now).every((key) => ANY_TEXT.has(key));
  return isAny && SCALARS.has(String(old['type'])) && old['default'] === undefined;
}

function styleOf({ in: place, style, explode }: Json): string {
  const used = typeof style === 'string' ? style : place === 'query' || place === 'cookie' ? 'form' : 'simple';
  return `${used}${(typeof explode === 'boolean' ? explode : used === 'form') ? ', exploded' : ''}`;
}

/** `x-sunset` of an operation or parameter. */
function sunsetOf({ 'x-sunset': sunset }: Json): Date | undefined {
  const date = typeof sunset === 'string' ? new Date(sunset) : undefined;
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date;
}
