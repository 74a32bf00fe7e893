"""A private model of records that stay with Flower clients, each of whom is a partition."""

import pickle

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from my_records import load_records  # number -> X, y, as a client holds them

from dpcd_sklearn import DPLinearClassifier, PrivacyAccountant
from dpcd_sklearn.partitions import fit_partitions

client_app = ClientApp()
server_app = ServerApp()


@client_app.query()
def answer(message, context):
    number = context.node_config["partition-id"]
    task = pickle.loads(message.content["task"]["bytes"])  # of a server that is trusted
    found = pickle.dumps(task(number, *load_records(number)))
    reply = RecordDict({"found": ConfigRecord({"bytes": found})})
    return Message(content=reply, reply_to=message)


@server_app.main()
def main(grid, context):
    nodes = list(grid.get_node_ids())  # all of them, in every round: who is missing ends the fit

    def run(task):
        content = RecordDict({"task": ConfigRecord({"bytes": pickle.dumps(task)})})
        sent = [Message(content=content, message_type="query", dst_node_id=n) for n in nodes]
        replies = list(grid.send_and_receive(sent))
        if len(replies) < len(nodes) or any(reply.has_error() for reply in replies):
            raise ConnectionError("a client is missing; what was charged stays charged")
        return [pickle.loads(reply.content["found"]["bytes"]) for reply in replies]

    accountant = PrivacyAccountant.open("records.ledger")  # made once: see Deployment
    model = DPLinearClassifier(
        solver="newton", classes=[0, 1], feature_bounds=(-1, 1), accountant=accountant
    )
    print(fit_partitions(model, run).coef_)
