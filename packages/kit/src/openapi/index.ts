export { generateClient, type ClientOptions } from './clients/generate-client.ts';
export { openApiDocument, type OpenApiDocument } from './document.ts';
export { referenceController } from './reference/controller.ts';
