import { codesAnywhere, errorCodesOf } from '../src/openapi/error-codes.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- a document of any shape
type Json = any;

/**
 * The document with shared parameters, responses and defaults in the operations that use them, and schemas that are named after their operation
 * in their places, and the codes of errors: what a test asks about one operation is then in one place.
 */
export function wholeDocument(document: Json): Json {
  const resolve = (value: Json): Json =>
    typeof value?.$ref === 'string'
      ? resolve(
          value.$ref
            .slice(2)
            .split('/')
            .reduce((at: Json, step: string) => at[step.replaceAll('~1', '/').replaceAll('~0', '~')], document),
        )
      : value;
  const withSchemas = (holder: Json, operationId: string): Json =>
    holder?.content === undefined
      ? holder
      : {
          ...holder,
          content: Object.fromEntries(
            Object.entries<Json>(holder.content).map(([type, media]) => [
              type,
              isNamedAfter(operationId, media.schema) ? { ...media, schema: resolve(media.schema) } : media,
            ]),
          ),
        };
  const withHeaders = (response: Json): Json =>
    response.headers === undefined
      ? response
      : { ...response, headers: Object.fromEntries(Object.entries<Json>(response.headers).map(([name, each]) => [name, resolve(each)])) };
  const withCodes = (response: Json): Json => {
    const codes = errorCodesOf(response, anywhere);
    return codes === undefined ? response : { ...response, 'x-error-codes': codes };
  };
  const operationOf = (operation: Json, shared: Json[]): Json => ({
    security: document.security,
    'x-permission': document['x-permission'],
    ...operation,
    'x-throttles': (operation['x-throttles'] ?? document['x-throttles'] ?? []).map((each: Json) =>
      typeof each === 'string' ? document['x-throttles'].find(({ name }: Json) => name === each) : each,
    ),
    ...(operation.parameters === undefined && shared.length === 0
      ? {}
      : { parameters: [...shared, ...(operation.parameters ?? [])].map(resolve) }),
    ...(operation.requestBody === undefined ? {} : { requestBody: withSchemas(operation.requestBody, operation.operationId) }),
    responses: Object.fromEntries(
      Object.entries(operation.responses ?? {}).map(([status, each]) => [
        status,
        withCodes(withHeaders(withSchemas(resolve(each), operation.operationId))),
      ]),
    ),
  });
  const anywhere = codesAnywhere(document);
  return {
    ...document,
    paths: Object.fromEntries(
      Object.entries<Json>(document.paths).map(([path, item]) => [
        path,
        Object.fromEntries(
          Object.entries<Json>(item)
            .filter(([method]) => method !== 'parameters')
            .map(([method, operation]) => [method, operationOf(operation, item.parameters ?? [])]),
        ),
      ]),
    ),
  };
}

/** `ApiKeyCreateInput` of `api_key_create`. */
function isNamedAfter(operationId: string, schema: Json): boolean {
  const plain = operationId.replaceAll('_', '').toLowerCase();
  const name =
    String(schema?.$ref ?? '')
      .split('/')
      .at(-1)
      ?.toLowerCase() ?? '';
  return name === `${plain}input` || /^output\d*$/.test(name.startsWith(plain) ? name.slice(plain.length) : '');
}
