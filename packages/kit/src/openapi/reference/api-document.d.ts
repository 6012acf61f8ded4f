/** Makes `resolve`, and the examples of `example.js`, follow the references of this document. */
export function useDocument(document: object): void;
