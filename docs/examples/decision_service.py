"""The decision service.

A shop asks over HTTP which of three drinks to offer, and reports later whether it was bought. Every answer is on the
service's disk before it is sent. Here the service runs in a thread of the same program; usually you start it with
`belated serve --store decisions.db --config models.toml`.
"""

import threading
import time

import matplotlib.pyplot as plt
import numpy as np
import uvicorn

from belated import Geometric
from belated.client import Client
from belated.decisions import ModelSettings, SQLiteStore
from belated.service import Service, make_app

offers = {"actions": ["tea", "coffee", "cocoa"], "features": ["cold", "early"], "silence": {"kind": "unknown"}}
service = Service(SQLiteStore("decisions.db"), {"offers": ModelSettings.from_table(offers)}, clock=time.time)
server = uvicorn.Server(uvicorn.Config(make_app(service), port=0, log_level="warning"))
thread = threading.Thread(target=server.run)
thread.start()
while not server.started:
    time.sleep(0.01)
port = server.servers[0].sockets[0].getsockname()[1]

chances = {"tea": [0.2, 0.2], "coffee": [0.1, 0.6], "cocoa": [0.7, 0.0]}  # of a yes, on cold days and in early hours
rng, due, good = np.random.default_rng(0), [], []
delays = Geometric(20).sample(rng, 500)  # each answer comes so many decisions later
with Client(f"http://127.0.0.1:{port}") as client:
    for now in range(500):
        rewards = [reward for when, reward in due if when == now]
        if rewards:
            client.feedback_many("offers", rewards)
        cold = int(rng.random() < 0.5)
        decided = client.decide("offers", {"cold": cold, "early": 1 - cold})
        yes = rng.random() < chances[decided.action][1 - cold]
        due.append((now + 1 + delays[now], {"id": decided.id, "reward": float(yes)}))
        good.append(decided.action == ("cocoa" if cold else "coffee"))
    last = client.decision(decided.id)
server.should_exit = True
thread.join()

plt.style.use("belated.figure")
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
axes.plot(np.arange(25, 501), np.convolve(good, np.ones(25) / 25, mode="valid")[:476])
axes.set(xlabel="decision", ylabel="best offer shown, mean of 25", ylim=(0, 1.02))
figure.savefig("decision_service.png", dpi=150)
print(f"the last decision is {last['status']}: {last['action']}, chosen with probability {last['probability']:.2f}")
print(f"the best offer was shown {np.mean(good[:50]):.0%} of the time at first, {np.mean(good[-100:]):.0%} at the end")
