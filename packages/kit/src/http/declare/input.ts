/** The validated parts of a request. */
export interface Input {
  params: unknown;
  query: unknown;
  headers: unknown;
  cookies: unknown;
  body: unknown;
}
