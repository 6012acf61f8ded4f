import { followed, isObject, type Documents, type Json, SchemaComparison } from './compare-schemas.ts';
import { type ChangeLevel, type DiffRuleId, diffRules } from './rules.ts';

/** One difference between two documents, seen by a caller who was written against the older one. */
export interface DocumentChange {
  readonly id: DiffRuleId;
  readonly level: ChangeLevel;
  /** `GET /v1/orders`. */
  readonly operation: string;
  /** What of it: `query status__in`, `body items[].sku`, `200 items[].total`. */
  readonly place: string;
  readonly message: string;
}

const METHODS = ['get', 'query', 'post', 'put', 'patch', 'delete'];

/** Compares two OpenAPI documents, the older one first. No network: both are given. */
export function diffDocuments(base: Json, revision: Json): DocumentChange[] {
  const changes: DocumentChange[] = [];
  const documents = { base, revision };
  const [before, after] = [operationsOf(base), operationsOf(revision)];
  for (const [operation, old] of before) {
    const report = (id: DiffRuleId, place: string, message: string) =>
      void changes.push({ id, level: diffRules[id].level, operation, place, message });
    const current = after.get(operation);
    if (current === undefined) report('operation-removed', '', 'is gone.');
    else compareOperations(documents, old, current, report);
  }
  for (const operation of after.keys())
    if (!before.has(operation)) changes.push({ id: 'operation-added', level: 'additive', operation, place: '', message: 'is new.' });
  return changes;
}

type Report = (id: DiffRuleId, place: string, message: string) => void;

function operationsOf({ paths }: Json): Map<string, Json> {
  const found = new Map<string, Json>();
  for (const [path, item] of Object.entries(isObject(paths) ? paths : {}))
    for (const method of METHODS) {
      const operation = isObject(item) ? item[method] : undefined;
      if (isObject(operation)) found.set(`${method.toUpperCase()} ${path}`, operation);
    }
  return found;
}

function compareOperations(documents: Documents, before: Json, after: Json, report: Report): void {
  if (before['operationId'] !== after['operationId'])
    report('operation-id-changed', '', `is ${String(after['operationId'])} now, was ${String(before['operationId'])}.`);
  if (before['deprecated'] !== true && after['deprecated'] === true) report('operation-deprecated', '', 'is deprecated.');
  const [oldScope, newScope] = [before, after].map((operation) =>
    typeof operation['x-scope'] === 'string' ? operation['x-scope'] : 'none',
  );
  if (oldScope !== newScope) report('scope-changed', 'scope', `is ${newScope}, was ${oldScope}.`);
  if (before['x-permission'] !== after['x-permission'])
    report('permission-changed', 'permission', `is ${String(after['x-permission'])}, was ${String(before['x-permission'])}.`);
  compareParameters(documents, before, after, report);
  compareBodies(documents, before, after, report);
  compareResponses(documents, before, after, report);
}

function parametersOf({ parameters }: Json, document: Json): Map<string, Json> {
  const list = Array.isArray(parameters) ? parameters : [];
  return new Map(
    list.map((each) => {
      const parameter = followed(each, document);
      return [`${String(parameter['in'])} ${String(parameter['name'])}`, parameter];
    }),
  );
}

function compareParameters(documents: Documents, before: Json, after: Json, report: Report): void {
  const [old, current] = [parametersOf(before, documents.base), parametersOf(after, documents.revision)];
  for (const [name, parameter] of old) {
    const now = current.get(name);
    if (now === undefined) {
      report('parameter-removed', name, 'is gone.');
      continue;
    }
    if (parameter['required'] !== true && now['required'] === true) report('parameter-became-required', name, 'is required now.');
    if (parameter['required'] === true && now['required'] !== true) report('parameter-became-optional', name, 'is optional now.');
    schemas(documents, 'input', report, name).compare(parameter['schema'], now['schema'], '');
  }
  for (const [name, { required }] of current)
    if (!old.has(name)) report(required === true ? 'required-parameter-added' : 'parameter-added', name, 'is new.');
}

/** Places inside a schema are told below what they belong to. */
function schemas(documents: Documents, direction: 'input' | 'output', report: Report, at: string): SchemaComparison {
  return new SchemaComparison(documents, direction, (id, place, message) => report(id, place === '' ? at : `${at} ${place}`, message));
}

function contentOf(holder: unknown): Json {
  const content = isObject(holder) ? holder['content'] : undefined;
  return isObject(content) ? content : {};
}

function compareContent(documents: Documents, direction: 'input' | 'output', before: Json, after: Json, at: string, report: Report): void {
  for (const [type, media] of Object.entries(before)) {
    const now = after[type];
    if (!isObject(now)) report('media-type-removed', `${at} ${type}`, 'is gone.');
    else if (isObject(media)) schemas(documents, direction, report, at).compare(media['schema'], now['schema'], '');
  }
  for (const type of Object.keys(after)) if (!(type in before)) report('media-type-added', `${at} ${type}`, 'is new.');
}

function compareBodies(documents: Documents, before: Json, after: Json, report: Report): void {
  const [old, current] = [followed(before['requestBody'], documents.base), followed(after['requestBody'], documents.revision)];
  const [had, has] = [isObject(before['requestBody']), isObject(after['requestBody'])];
  if (had && !has) report('body-removed', 'body', 'is not taken any more.');
  else if (!had && has) report('body-added', 'body', 'is needed.');
  else if (had) compareContent(documents, 'input', contentOf(old), contentOf(current), 'body', report);
}

function compareResponses(documents: Documents, before: Json, after: Json, report: Report): void {
  const responsesOf = (operation: Json, document: Json) =>
    new Map(
      Object.entries(isObject(operation['responses']) ? operation['responses'] : {}).map(([status, each]) => [
        status,
        followed(each, document),
      ]),
    );
  const [old, current] = [responsesOf(before, documents.base), responsesOf(after, documents.revision)];
  const isSuccess = (status: string) => /^[23]/.test(status);
  for (const [status, response] of old) {
    const now = current.get(status);
    if (isSuccess(status)) {
      if (now === undefined) report('response-removed', status, 'is gone.');
      else {
        compareContent(documents, 'output', contentOf(response), contentOf(now), status, report);
        compareHeaders(response, now, status, report);
      }
    }
  }
  for (const status of current.keys()) if (isSuccess(status) && !old.has(status)) report('response-added', status, 'is new.');
  const codes = (responses: Map<string, Json>) =>
    new Set(
      [...responses].flatMap(([status, { 'x-error-codes': given }]) =>
        Array.isArray(given) ? given.map((code) => `${status} ${String(code)}`) : [],
      ),
    );
  const [known, now] = [codes(old), codes(current)];
  for (const code of known) if (!now.has(code)) report('error-code-removed', code, 'is gone.');
  for (const code of now) if (!known.has(code)) report('error-code-added', code, 'is new.');
}

function compareHeaders(before: Json, after: Json, status: string, report: Report): void {
  const names = ({ headers }: Json) => Object.keys(isObject(headers) ? headers : {});
  for (const name of names(before)) if (!names(after).includes(name)) report('response-header-removed', `${status} ${name}`, 'is gone.');
  for (const name of names(after)) if (!names(before).includes(name)) report('response-header-added', `${status} ${name}`, 'is new.');
}
