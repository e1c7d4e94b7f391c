/** Webhooks of the account. */

import type { Door, RequestOptions } from "./door.js";
import type * as api from "./generated/api.js";
import { segment } from "./paths.js";

export class Webhooks {
  /** @internal */
  constructor(private readonly door: Door) {}

  async list(options: RequestOptions = {}): Promise<api.Webhook[]> {
    return (await this.door.get<api.WebhookList>("WebhookList", "/webhooks", {}, options)).webhooks;
  }

  /** Its `secret` is shown this once. Without `events`: all but `instruction.ended`. */
  async add(url: string, options: RequestOptions & { events?: readonly string[] | undefined; secret?: string | undefined } = {}): Promise<api.WebhookCreated> {
    const { signal, events, secret } = options;
    return await this.door.post("WebhookCreated", "/webhooks", { url, events, secret }, { signal });
  }

  /** With all that is on its way to it. */
  async delete(id: string, options: RequestOptions = {}): Promise<void> {
    await this.door.delete(`/webhooks/${segment(id)}`, {}, options);
  }

  /** Send it one event now. Throws WebhookFailed, which says why it did not arrive. */
  async test(id: string, options: RequestOptions = {}): Promise<void> {
    await this.door.post<api.WebhookTested>("WebhookTested", `/webhooks/${segment(id)}/test`, null, { signal: options.signal });
  }

  /** What was tried often enough, newest first. */
  async dead(options: RequestOptions = {}): Promise<api.Delivery[]> {
    return (await this.givenUp(options)).deliveries;
  }

  /** The same, and how many older ones there was no room for. */
  async givenUp(options: RequestOptions = {}): Promise<api.DeliveryList> {
    return await this.door.get("DeliveryList", "/webhooks/dead", {}, options);
  }

  /** One of them, or all, is tried anew; how many. */
  async retry(id?: string, options: RequestOptions = {}): Promise<number> {
    return (await this.door.post<api.Retried>("Retried", "/webhooks/dead/retry", { id }, { signal: options.signal })).deliveries;
  }
}
