export { generateClient, type ClientOptions } from './clients/generate-client.ts';
export { openApiDocument, type OpenApiDocument, type OpenApiOptions } from './document.ts';
export { referenceController, type ReferenceOptions } from './reference/controller.ts';
