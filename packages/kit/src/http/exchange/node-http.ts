/**
 * Node's `http`, without an `import`: that reads every export, and one of them loads the whole client behind `fetch` (65 ms of CPU time at each
 * start, `http` itself takes 5). Functions are called on the module, so that instrumentation that wraps them sees each call.
 */
export const nodeHttp = process.getBuiltinModule('node:http');
